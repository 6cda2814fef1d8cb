// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/requests_target.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <optional>
#include <spdlog/spdlog.h>
#include <sys/shm.h>
#include <unistd.h>

namespace parc::fuzz {
namespace {

constexpr std::uint32_t fragment = 512;

void require(bool so) {
  if (!so) std::abort();
}

template <class T> T value_of(Result<T> result) {
  require(static_cast<bool>(result));
  return std::move(result).value();
}

std::unique_ptr<daemon::Kernel> make_kernel() {
  spdlog::set_level(spdlog::level::off);
  std::signal(SIGPIPE, SIG_IGN);
  std::string directory = "/tmp/parc-fuzz-XXXXXX";
  require(mkdtemp(directory.data()) != nullptr);
  RuntimeDir checked = value_of(make_runtime_dir(directory));
  require(rmdir(directory.c_str()) == 0); // a kernel that does not listen has nothing to put there
  daemon::Config config;
  config.name = "fuzzed";
  config.pool = 65'536;
  daemon::Kernel::World world{config,
                              std::move(checked),
                              {},
                              value_of(SchedulingClass::acquire(RealtimePolicy::Off)),
                              [] { return std::nullopt; },
                              [] { return 0; }};
  world.processes.start = [](const Program&, const std::vector<std::string>&, bool, const auto*) {
    return Result<daemon::StartedProcess>(error(EPERM, "what is asked for here is never run"));
  };
  return std::make_unique<daemon::Kernel>(std::move(world));
}

// The next bytes of an input as a T; what is missing is zero.
template <class T> T take(std::span<const std::uint8_t>& input) {
  T value{};
  const std::size_t n = std::min(sizeof value, input.size());
  if (n != 0) std::memcpy(&value, input.data(), n);
  input = input.subspan(n);
  return value;
}

std::span<const std::uint8_t> take_bytes(std::span<const std::uint8_t>& input) {
  const std::size_t length = take<std::uint8_t>(input);
  const std::size_t n = std::min(length, input.size());
  const auto bytes = input.first(n);
  input = input.subspan(n);
  return bytes;
}

void put(std::byte* memory, std::size_t size, std::size_t offset, std::span<const std::uint8_t> bytes) {
  const std::size_t at = offset % size;
  std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()), std::min(bytes.size(), size - at),
              memory + at);
}

bool attached_elsewhere(const shm::Segment& segment) {
  shmid_ds status{};
  require(shmctl(segment.id(), IPC_STAT, &status) == 0);
  return status.shm_nattch != 1;
}

} // namespace

Host::Host() : kernel_(make_kernel()), peer_({.pool = 65'536}, *this) {
  link_ = kernel_->engine().add_link({fragment, 1, 2});
  peer_link_ = peer_.add_link({fragment, 2, 1});
  data_ = value_of(shm::Segment::create(data_bytes));
  more_ = value_of(shm::Segment::create(more_bytes));
  for (shm::Segment& control : controls_) control = value_of(shm::Segment::create(sizeof(shm::Control)));
  for (shm::Segment& block : blocks_) block = value_of(shm::Segment::create(shm::bytes_of_block(1)));
}

int Host::segment_id(std::size_t program, std::uint64_t index) const {
  switch (index) {
  case 0: return data_.id();
  case 1: return more_.id();
  case 2: return controls_[program].id();
  case 3: return controls_[1 - program].id();
  case 4: return blocks_[program].id();
  default: return -1;
  }
}

void Host::clear() {
  std::memset(data_.data(), 0, data_.size());
  for (std::size_t program = 0; program < controls_.size(); ++program) {
    std::memset(controls_[program].data(), 0, controls_[program].size());
    std::memset(blocks_[program].data(), 0, blocks_[program].size());
    shm::ControlHeader& header = control(program).header;
    header.magic = shm::control_magic;
    header.request_slots = shm::request_slots;
    header.read_slots = shm::read_slots;
    header.write_slots = shm::write_slots;
    header.segment_bytes = sizeof(shm::Control);
    header.version.store(shm::layout_version);
  }
}

void Host::start_job() {
  const auto there = static_cast<std::int32_t>(link_), home = static_cast<std::int32_t>(peer_link_);
  for (std::uint64_t& endpoint : endpoints_) endpoint = kernel_->engine().add_endpoint();
  peer_endpoint_ = peer_.add_endpoint();
  using protocol::here;
  group_ = kernel_->engine().add_group(
      std::vector<protocol::Address>{{here, endpoints_[0]}, {here, endpoints_[1]}, {there, peer_endpoint_}});
  peer_group_ = peer_.add_group(
      std::vector<protocol::Address>{{home, endpoints_[0]}, {home, endpoints_[1]}, {here, peer_endpoint_}});
}

void Host::drop_job() {
  peer_.drop_group(peer_group_);
  kernel_->engine().drop_group(group_);
}

bool Host::go_round() {
  event_base_loop(kernel_->loop().events(), EVLOOP_NONBLOCK);
  bool moved = kernel_->turn() != 0;
  protocol::Engine& engine = kernel_->engine();
  engine.flush_acknowledgements();
  peer_.flush_acknowledgements();
  moved |= there_.fill(engine, link_, data_bytes) != 0;
  moved |= back_.fill(peer_, peer_link_, data_bytes) != 0;
  protocol::Refusal refusal = protocol::Refusal::none;
  moved |= there_.drain(peer_, peer_link_, data_bytes, 64, refusal) != 0;
  require(refusal == protocol::Refusal::none); // no program can make its kernel break the rules of the wire
  moved |= back_.drain(engine, link_, data_bytes, 64, refusal) != 0;
  require(refusal == protocol::Refusal::none);
  return moved;
}

void Host::write_from_peer(std::uint8_t tag, std::size_t length) {
  peer_.write(peer_endpoint_, {.destination = tag % 2u,
                               .tag = tag,
                               .flags = when(tag % 3 == 0, protocol::MessageFlags::from_end),
                               .memory = {peer_memory_.data(), length}});
}

void Host::read_at_peer(std::uint8_t tag, std::size_t length) {
  peer_.read(peer_endpoint_, {.source = tag % 4 == 0 ? -1 : tag / 4 % 2,
                              .ignore = ~std::uint64_t{0},
                              .flags = when(tag % 3 == 0, protocol::MessageFlags::from_end),
                              .memory = {peer_memory_.data(), length}});
}

void Host::check_forgotten() {
  require(!attached_elsewhere(data_) && !attached_elsewhere(more_));
  for (const shm::Segment& control : controls_) require(!attached_elsewhere(control));
  for (const shm::Segment& block : blocks_) require(!attached_elsewhere(block));
  require(kernel_->engine().pool_in_use() == 0);
  const protocol::Link& link = kernel_->engine().link(link_);
  require(link.granted_used == link.freed && link.answers.empty() && link.fresh.empty());
}

Programs::Programs(Host& host) : host_(host) {
  host_.clear();
  host_.start_job();
  for (std::size_t number = 0; number < programs_.size(); ++number) start(number);
  host_.go_round();
}

// It has said its hello; the kernel has not heard it yet.
void Programs::start(std::size_t number) {
  Program& program = programs_[number];
  std::array<int, 2> up{}, down{};
  require(pipe2(up.data(), O_NONBLOCK | O_CLOEXEC) == 0 && pipe2(down.data(), O_NONBLOCK | O_CLOEXEC) == 0);
  program.to_kernel.reset(up[1]);
  program.from_kernel.reset(down[0]);
  host_.kernel().sessions().add(
      {Host::job, static_cast<std::int32_t>(number), Host::ranks, host_.endpoint(number)}, Fd(up[0]),
      Fd(down[1]), [&program](daemon::Sessions::End) { ++program.ended; });
  const shm::Attach hello{shm::attach_magic,
                          shm::layout_version,
                          host_.segment_id(number, 2),
                          sizeof(shm::Control),
                          static_cast<std::int32_t>(getpid()),
                          0};
  require(write(program.to_kernel.get(), &hello, sizeof hello) == sizeof hello);
}

void Programs::request(std::size_t number, shm::Request request) {
  if (request.kind == shm::RequestKind::map || request.kind == shm::RequestKind::grow)
    request.attached.segment = static_cast<std::uint64_t>(host_.segment_id(number, request.attached.segment));
  shm::Control& control = host_.control(number);
  const auto tail = control.header.request_tail.load();
  control.requests[tail % shm::request_slots] = request;
  control.header.request_tail.store(tail + 1);
}

void Programs::play(std::span<const std::uint8_t>& input) {
  const auto first = take<std::uint8_t>(input);
  const std::size_t number = first >> 7;
  Program& program = programs_[number];
  const auto kind = static_cast<Record>(first & 7);
  program.touched |= kind != Record::turn && kind != Record::peer;
  switch (kind) {
  case Record::request: request(number, take<shm::Request>(input)); break;
  case Record::tail: host_.control(number).header.request_tail.store(take<std::uint64_t>(input)); break;
  case Record::data: {
    const auto offset = take<std::uint16_t>(input);
    for (Program& each : programs_) each.touched = true; // it is everybody's
    put(host_.data(), data_bytes, offset, take_bytes(input));
    break;
  }
  case Record::control: {
    const auto offset = take<std::uint32_t>(input);
    put(reinterpret_cast<std::byte*>(&host_.control(number)), sizeof(shm::Control), offset,
        take_bytes(input));
    break;
  }
  case Record::pipe: {
    const auto bytes = take_bytes(input);
    if (program.to_kernel && !bytes.empty())
      (void)!write(program.to_kernel.get(), bytes.data(), bytes.size());
    break;
  }
  case Record::turn: break;
  case Record::end: program.to_kernel.reset(); break;
  case Record::peer: {
    const auto tag = take<std::uint8_t>(input);
    const std::size_t length = take<std::uint8_t>(input) * std::size_t{16};
    if (tag % 2 != 0)
      host_.write_from_peer(tag, length);
    else
      host_.read_at_peer(tag, length);
    break;
  }
  }
  if ((first & more_at_once) != 0) return;
  host_.go_round();
  for (Program& each : programs_) {
    std::array<char, 4096> bells;
    while (read(each.from_kernel.get(), bells.data(), bells.size()) > 0) {
    }
  }
}

// Whatever its neighbour did, a program that kept the rules is served.
void Programs::check_unharmed(std::size_t number) {
  require(programs_[number].ended == 0);
  // What the other one still has under way may be for memory that both share.
  for (int rounds = 0; rounds < 1000 && host_.go_round(); ++rounds) continue;
  const auto id = [](std::uint32_t slot) { return std::uint64_t{1} << shm::slot_bits | slot; };
  shm::Request map{};
  map.kind = shm::RequestKind::map;
  map.id = id(shm::control_slot);
  map.address = data_address;
  map.length = data_bytes;
  request(number, map);
  shm::Request message{};
  message.kind = shm::RequestKind::read;
  message.id = id(0);
  message.peer = static_cast<std::int32_t>(number);
  message.read.tag = shm::tag_of(99, 0);
  message.address = data_address + 100;
  message.length = 5;
  request(number, message);
  message.kind = shm::RequestKind::write;
  message.id = id(shm::read_slots);
  message.address = data_address + 200;
  request(number, message);
  std::memcpy(host_.data() + 200, "hello", 5);
  for (int rounds = 0; rounds < 4; ++rounds) host_.go_round();
  for (const std::uint32_t slot : {shm::control_slot, std::uint32_t{0}, shm::read_slots}) {
    const shm::Operation& operation = host_.control(number).operations[slot];
    require(operation.state.load() == shm::state_word(1, shm::Phase::done) &&
            operation.error.load() == PARC_OK);
  }
  require(std::memcmp(host_.data() + 100, "hello", 5) == 0);
}

Programs::~Programs() {
  for (std::size_t number = 0; number < programs_.size(); ++number)
    if (!programs_[number].touched) check_unharmed(number);
  for (Program& program : programs_) program.to_kernel.reset();
  constexpr int patience = 100'000; // rounds: all that was accepted has a place to go, or its end
  int rounds = 0;
  while (host_.go_round() || programs_[0].ended == 0 || programs_[1].ended == 0) require(++rounds < patience);
  host_.drop_job();
  while (host_.go_round()) require(++rounds < patience);
  for (const Program& program : programs_) require(program.ended == 1);
  host_.check_forgotten();
}

} // namespace parc::fuzz
