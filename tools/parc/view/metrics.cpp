// SPDX-License-Identifier: BSD-3-Clause
// parc metrics: what parc status knows, for Prometheus. A table for each kind of thing says which families
// there are, so that all samples of one stand together.
#include "tools/parc/view/commands.hpp"
#include "tools/parc/view/exposition.hpp"
#include "tools/parc/view/view.hpp"

#include <iostream>
#include <memory>

namespace parc::tools {
namespace {

template <class Thing> struct Family {
  std::string_view name, help;
  double (*value)(const Thing&);
};

double number(std::uint64_t value) {
  return static_cast<double>(value);
}

constexpr Family<CounterSnapshot::Link> link_families[]{
    {"parc_link_up", "1: it has a connection; 0: one is being made again",
     [](const CounterSnapshot::Link& link) { return link.state == LinkState::Up ? 1.0 : 0.0; }},
    {"parc_link_start_time_seconds", "when it began, in Unix time",
     [](const CounterSnapshot::Link& link) { return number(link.since_s); }},
    {"parc_link_connections_total", "connections that it has had",
     [](const CounterSnapshot::Link& link) { return number(link.carriers); }},
    {"parc_link_round_trip_seconds", "the lowest of its path",
     [](const CounterSnapshot::Link& link) { return number(link.rtt_us) / 1e6; }},
    {"parc_link_received_bytes_total", "all bytes received, headers too",
     [](const CounterSnapshot::Link& link) { return number(link.bytes_in); }},
    {"parc_link_sent_bytes_total", "all bytes sent, headers too",
     [](const CounterSnapshot::Link& link) { return number(link.bytes_out); }},
    {"parc_link_received_messages_total", "messages of programs received",
     [](const CounterSnapshot::Link& link) { return number(link.messages_in); }},
    {"parc_link_sent_messages_total", "messages of programs sent",
     [](const CounterSnapshot::Link& link) { return number(link.messages_out); }},
    {"parc_link_resent_bytes_total", "payload sent again, over another connection than the one that was lost",
     [](const CounterSnapshot::Link& link) { return number(link.resent_bytes); }},
    {"parc_link_credit_bytes", "what may still be sent without being asked for",
     [](const CounterSnapshot::Link& link) { return number(link.credit); }},
    {"parc_link_unacknowledged_trains", "trains sent that the other side has not acknowledged",
     [](const CounterSnapshot::Link& link) { return number(link.unacknowledged); }},
    {"parc_link_queue_entries",
     "envelopes, payload runs and answers that the other side has not acknowledged",
     [](const CounterSnapshot::Link& link) { return number(link.queue); }},
    {"parc_link_stalls_total", "times that there was more to send than the connection took",
     [](const CounterSnapshot::Link& link) { return number(link.stalls); }},
};

// Counted by the kernel.
constexpr Family<ProgramView> program_families[]{
    {"parc_program_sent_messages_total", "messages sent through the kernel",
     [](const ProgramView& program) { return number(program.counted.messages_out); }},
    {"parc_program_received_messages_total", "messages received through the kernel",
     [](const ProgramView& program) { return number(program.counted.messages_in); }},
    {"parc_program_sent_bytes_total", "their bytes",
     [](const ProgramView& program) { return number(program.counted.bytes_out); }},
    {"parc_program_received_bytes_total", "their bytes",
     [](const ProgramView& program) { return number(program.counted.bytes_in); }},
    {"parc_program_reads", "reads in flight in the kernel",
     [](const ProgramView& program) { return number(program.counted.reads); }},
    {"parc_program_writes", "writes in flight in the kernel",
     [](const ProgramView& program) { return number(program.counted.writes); }},
};

// Seen in the program's own segment, where that is there.
constexpr Family<ProgramView> seen_families[]{
    {"parc_program_waiting", "1: a thread of it waits in libparc",
     [](const ProgramView& program) { return program.seen.resting ? 1.0 : 0.0; }},
    {"parc_program_waits_total", "waits that polling did not end",
     [](const ProgramView& program) { return number(program.seen.waits.rested); }},
    {"parc_program_early_released_waits_total", "waits that early release let return",
     [](const ProgramView& program) { return number(program.seen.waits.released); }},
    {"parc_program_early_touches_total", "touches of pages that were guarded",
     [](const ProgramView& program) { return number(program.seen.waits.faults); }},
    {"parc_program_early_late_touches_total",
     "of these, of pages that had arrived and were only to be opened",
     [](const ProgramView& program) { return number(program.seen.waits.late_faults); }},
    {"parc_program_neighbour_sent_messages_total", "messages to programs of this host without the kernel",
     [](const ProgramView& program) { return number(program.seen.neighbours.messages); }},
    {"parc_program_neighbour_sent_bytes_total", "their bytes",
     [](const ProgramView& program) { return number(program.seen.neighbours.bytes); }},
    {"parc_program_neighbour_received_messages_total",
     "messages from programs of this host without the kernel",
     [](const ProgramView& program) { return number(program.seen.neighbours.received); }},
    {"parc_program_neighbour_received_bytes_total", "their bytes",
     [](const ProgramView& program) { return number(program.seen.neighbours.received_bytes); }},
    {"parc_program_neighbour_reads_taken_total", "posted reads of neighbours taken for its messages",
     [](const ProgramView& program) { return number(program.seen.neighbours.taken); }},
    {"parc_program_neighbour_interrupts_total", "signals of neighbours that it has had",
     [](const ProgramView& program) { return number(program.seen.neighbours.interrupts); }},
    {"parc_program_neighbour_waiting_messages", "messages to programs of this host that do not take them",
     [](const ProgramView& program) { return number(program.seen.backlog.to_neighbours); }},
    {"parc_program_neighbour_waiting_bytes", "memory for these",
     [](const ProgramView& program) { return number(program.seen.backlog.to_neighbours_bytes); }},
    {"parc_program_neighbour_unread_messages",
     "messages from programs of this host, kept in libparc, that no read has taken",
     [](const ProgramView& program) { return number(program.seen.backlog.from_neighbours); }},
    {"parc_program_neighbour_unread_bytes", "memory for these",
     [](const ProgramView& program) { return number(program.seen.backlog.from_neighbours_bytes); }},
    {"parc_program_put_off_operations", "operations that libfabric's provider has no memory for yet",
     [](const ProgramView& program) { return number(program.seen.backlog.put_off); }},
    {"parc_program_held_writes", "writes in the kernel whose receivers have no place for them",
     [](const ProgramView& program) { return number(program.seen.backlog.kernel_held); }},
    {"parc_program_unread_messages", "messages in the kernel that no read has taken",
     [](const ProgramView& program) { return number(program.seen.backlog.kernel_unread); }},
};

template <class Families, class Things, class LabelsOf>
void add(Exposition& out, const Families& families, const Things& things, const LabelsOf& labels_of) {
  if (std::begin(things) == std::end(things)) return;
  for (const auto& family : families) {
    out.family(family.name, family.help);
    for (const auto& thing : things) out.sample(labels_of(thing), family.value(thing));
  }
}

void add_kernel(Exposition& out, const CounterSnapshot& kernel) {
  out.family("parc_up", "1: the kernel runs; 0: it is dead, and all else are its last values");
  out.sample({}, std::uint64_t{kernel.alive});
  out.family("parc_stopped", "1: a signal or a debugger has stopped the kernel");
  out.sample({}, std::uint64_t{kernel.stopped});
  out.family("parc_info", "version, scheduling class and where it listens");
  out.sample({{"version", kernel.program}, {"scheduling", kernel.scheduling}, {"listens", kernel.listens}},
             std::uint64_t{1});
  out.family("parc_start_time_seconds", "when the kernel was started, in Unix time");
  out.sample({}, kernel.started_s);
  for (const CounterRow& row : counter_table) {
    out.family(fmt::format("parc_kernel_{}", row.metric), row.help);
    out.sample({}, kernel[row.counter]);
  }
}

// By kind only: sentences name hosts and programs, and would be ever more series.
void add_errors(Exposition& out, const CounterSnapshot& kernel) {
  out.family("parc_errors_total", "errors by kind; parc errors has their sentences");
  for (std::size_t kind = 0; kind < error_kinds; ++kind)
    out.sample({{"kind", std::string(name(static_cast<ErrorKind>(kind)))}}, kernel.error_totals[kind]);
}

void add_jobs(Exposition& out, const CounterSnapshot& kernel) {
  if (kernel.jobs.empty()) return;
  out.family("parc_job_ranks", "ranks of the job on this host");
  for (const auto& job : kernel.jobs)
    out.sample({{"job", job_name(job.id)}, {"state", std::string(name(job.state))}}, job.ranks);
}

Exposition::Labels labels_of_program(const ProgramView& program) {
  return {{"job", job_name(program.counted.job)},
          {"rank", fmt::to_string(program.counted.rank)},
          {"program", program.seen.program}};
}

std::string exposition_of(const KernelView& view) {
  // A machine may have several kernels: of users, or of batch jobs.
  Exposition out({{"host", view.kernel.host}, {"port", fmt::to_string(view.kernel.port)}});
  add_kernel(out, view.kernel);
  add_errors(out, view.kernel);
  add_jobs(out, view.kernel);
  // Two kernels of one name are two links.
  add(out, link_families, view.kernel.links, [](const CounterSnapshot::Link& link) {
    return Exposition::Labels{{"peer", link.peer}, {"identity", fmt::format("{:x}", link.identity)}};
  });
  add(out, program_families, view.programs, labels_of_program);
  std::vector<ProgramView> joined;
  for (const ProgramView& program : view.programs)
    if (program.seen.joined) joined.push_back(program);
  add(out, seen_families, joined, labels_of_program);
  return out.text();
}

int metrics(const std::string& runtime_dir) {
  const auto counters = open_counters(runtime_dir);
  if (!counters) {
    std::cerr << "parc: " << counters.error().text << '\n';
    return status_failure;
  }
  std::cout << exposition_of(look_at_kernel(counters.value()));
  return 0;
}

} // namespace

Command metrics_command() {
  const auto directory = std::make_shared<std::string>();
  return {.name = "metrics",
          .help = "Print what status shows for Prometheus",
          .options = [directory](CLI::App& app) { add_runtime_dir(app, *directory); },
          .run = [directory] { return metrics(*directory); }};
}

} // namespace parc::tools
