// SPDX-License-Identifier: BSD-3-Clause
// make_requests_corpus DIR: writes what programs ask for to the fuzz target, one file per scene.
#include "tests/fuzz/requests_target.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

namespace {

using namespace parc::fuzz;
using namespace parc::shm;

class Scene {
public:
  template <class... Values> void record(Record kind, const Values&... values) {
    record_.push_back(static_cast<std::uint8_t>(static_cast<std::uint8_t>(kind) | whose_));
    (append(values), ...);
  }
  void second() { whose_ = second_program; }
  void at_once() { whose_ |= more_at_once; }
  void turn() { record(Record::turn); }

  std::uint64_t read(std::int32_t from, std::int32_t tag, std::uint64_t address, std::uint64_t length,
                     MessageFlags flags = MessageFlags::none) {
    Request request = message(RequestKind::read, next(0, ++reads_), from, tag, address, length);
    request.flags = flags;
    return ask(request);
  }
  std::uint64_t late_read(std::int32_t from, std::int32_t tag, std::uint64_t length) {
    Request request = message(RequestKind::read, next(0, ++reads_), from, tag, 0, length);
    request.pieces = no_memory_yet;
    return ask(request);
  }
  void place(std::uint64_t id, std::uint64_t address, std::uint64_t length) {
    ask(message(RequestKind::place, id, 0, 0, address, length));
  }
  void unplace(std::uint64_t id) {
    Request request = message(RequestKind::unplace, next(control_slot, 0), 0, 0, 0, 0);
    request.unplaced.read = id;
    ask(request);
  }
  std::uint64_t probe(std::int32_t from, std::int32_t tag, MessageFlags flags = MessageFlags::none) {
    Request request = message(RequestKind::probe, next(0, ++reads_), from, tag, 0, 0);
    request.flags = flags;
    return ask(request);
  }
  std::uint64_t write(std::int32_t to, std::int32_t tag, std::uint64_t address, std::uint64_t length,
                      std::uint16_t pieces = 0) {
    Request request = message(RequestKind::write, next(read_slots, ++writes_), to, tag, address, length);
    request.pieces = pieces;
    return ask(request);
  }
  void map(std::uint64_t address, std::uint64_t length, std::uint64_t segment) {
    Request request = message(RequestKind::map, next(control_slot, 0), 0, 0, address, length);
    request.attached.segment = segment;
    ask(request);
  }
  void unmap(std::uint64_t address) {
    ask(message(RequestKind::unmap, next(control_slot, 0), 0, 0, address, 0));
  }
  void grow(std::uint64_t block, std::uint64_t length, std::uint64_t segment) {
    Request request = message(RequestKind::grow, next(control_slot, 0), 0, 0, 0, length);
    request.attached = {segment, block};
    ask(request);
  }
  // Of the slot that is the first one of a half of a block.
  std::uint64_t in_block(RequestKind kind, std::uint32_t slot, std::int32_t peer) {
    return ask(message(kind, next(slot, 0), peer, 1, data_address, 100));
  }
  void expose(std::uint64_t window, std::uint64_t address, std::uint64_t length, std::uint64_t rights = 1) {
    Request request = message(RequestKind::expose, next(control_slot, 0), 0, 0, address, length);
    request.exposed = {window, rights};
    ask(request);
  }
  void unexpose(std::uint64_t window) {
    Request request = message(RequestKind::unexpose, next(control_slot, 0), 0, 0, 0, 0);
    request.exposed.window = window;
    ask(request);
  }
  std::uint64_t get(std::int32_t from, std::uint64_t window, std::uint64_t offset, std::uint64_t address,
                    std::uint64_t length, std::uint32_t rows = 0, std::int64_t stride = 0) {
    Request request = message(RequestKind::get, next(0, ++reads_), from, 0, address, length);
    request.place = {window, offset, stride};
    request.entry = rows;
    return ask(request);
  }
  std::uint64_t put(std::int32_t to, std::uint64_t window, std::uint64_t offset, std::uint64_t address,
                    std::uint64_t length, std::uint32_t rows = 0, std::int64_t stride = 0) {
    Request request = message(RequestKind::put, next(read_slots, ++writes_), to, 0, address, length);
    request.place = {window, offset, stride};
    request.entry = rows;
    return ask(request);
  }
  std::uint64_t add(std::int32_t to, std::uint64_t window, std::uint64_t offset,
                    std::uint32_t what = 8 << 8) {
    Request request = message(RequestKind::atomic, next(0, ++reads_), to, 0, 0, 0);
    request.atomic = {window, offset, 1};
    request.entry = what;
    return ask(request);
  }
  void cancel(std::uint64_t id) { ask(message(RequestKind::cancel, id, 0, 0, 0, 0)); }
  void hand_over(std::uint64_t id, std::uint64_t address, std::uint64_t length, std::uint64_t begin,
                 MessageFlags flags = MessageFlags::none) {
    Request request = message(RequestKind::hand_over, id, 0, 0, address, length);
    request.flags = flags;
    request.handed.border = begin;
    ask(request);
  }
  void leave() { ask(message(RequestKind::leave, next(control_slot, 0), 0, 0, 0, 0)); }
  void abort() {
    Request request = message(RequestKind::abort, 0, 0, 0, 0, 0);
    request.aborted.status = 3;
    ask(request);
  }
  void spawn(std::string_view texts, std::uint64_t count, std::uint64_t length) {
    record(Record::data, std::uint16_t{0}, static_cast<std::uint8_t>(texts.size()));
    record_.insert(record_.end(), texts.begin(), texts.end());
    Request request = message(RequestKind::spawn, next(0, reads_++), 0, 0, data_address, length);
    request.spawned = {texts.size(), count};
    ask(request);
  }
  std::uint64_t exit_of(std::int32_t peer) {
    return ask(message(RequestKind::exit_of, next(0, reads_++), peer, 0, 0, 0));
  }
  void signal(std::int32_t peer, std::uint64_t number) {
    Request request = message(RequestKind::signal, next(0, reads_++), peer, 0, 0, 0);
    request.signalled.number = number;
    ask(request);
  }
  void peer(std::uint8_t tag, std::uint8_t length) { record(Record::peer, tag, length); }
  void share() { map(data_address, data_bytes, 0), map(more_address, more_bytes, 1); }

  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return record_; }

private:
  static Request message(RequestKind kind, std::uint64_t id, std::int32_t peer, std::int32_t tag,
                         std::uint64_t address, std::uint64_t length) {
    Request request{};
    request.kind = kind;
    request.id = id;
    request.peer = peer;
    if (kind == RequestKind::write)
      request.write.tag = parc::shm::tag_of(0, std::max(tag, 0));
    else if (kind == RequestKind::read || kind == RequestKind::probe)
      request.read = {parc::shm::tag_of(0, std::max(tag, 0)), tag < 0 ? UINT32_MAX : 0, 0};
    request.address = address;
    request.length = length;
    return request;
  }
  template <class T> void append(const T& value) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
    record_.insert(record_.end(), from, from + sizeof value);
  }
  std::uint64_t next(std::uint32_t first_slot, std::uint32_t place) {
    return ++generation_ << slot_bits | (first_slot + place);
  }
  std::uint64_t ask(const Request& request) {
    record(Record::request, request);
    return request.id;
  }

  std::vector<std::uint8_t> record_;
  std::uint8_t whose_ = 0;
  std::uint64_t generation_ = 0;
  std::uint32_t reads_ = 0, writes_ = 0;
};

struct Named {
  const char* name;
  std::function<void(Scene&)> play;
};

const Named scenes[] = {
    {"to_itself",
     [](Scene& s) {
       s.share();
       s.read(0, 1, data_address, 100);
       s.write(0, 1, data_address + 200, 100);
       s.write(0, 2, data_address + data_bytes - 50, 100); // over two segments
       s.read(-1, -1, more_address, 4096);
     }},
    {"to_a_neighbour",
     [](Scene& s) {
       s.share();
       s.write(1, 3, data_address, 20'000);
       s.second();
       s.share();
       s.read(0, 3, data_address + 30'000, 30'000);
       s.turn();
       s.probe(-1, -1);
       s.probe(0, 5, MessageFlags::no_wait);
     }},
    {"windows",
     [](Scene& s) {
       s.share();
       s.expose(1, data_address, 40'000);
       s.expose(2, more_address, 4096, 5);
       s.expose(1, data_address, 10);
       s.expose(3, data_address, 50'000, 3);
       s.expose(4, data_address, 10, 8);
       s.get(0, 1, 100, data_address + 50'000, 1000);
       s.second();
       s.share();
       s.get(0, 2, 0, more_address, 4096);
       s.put(0, 3, 0, data_address, 40'000);
       s.put(0, 3, 10, more_address, 100);
       s.get(0, 3, 0, data_address, 40'000);
       s.put(0, 1, 0, more_address, 10);
       s.get(0, 3, 30'000, data_address, 4000, 50, -300);
       s.put(0, 3, 16, more_address, 4000, 4, 1024);
       s.get(0, 3, 16, data_address, 16, 2, INT64_MIN);
       s.add(0, 3, 8);
       s.add(0, 3, 9);
       s.cancel(s.add(0, 1, 0));
       s.put(0, 3, UINT64_MAX, data_address, 10);
       s.get(0, 1, 0, data_address, 40'000);
       s.get(0, 1, UINT64_MAX, data_address, 10);
       s.get(2, 1, 0, data_address, 10);
       s.cancel(s.get(0, 9, 0, data_address, 0));
       s.turn();
       s.expose(7, data_address, 100);
       s.unmap(data_address);
       s.unexpose(7);
       s.leave();
     }},
    {"windows_that_go",
     [](Scene& s) {
       s.share();
       s.expose(1, data_address, data_bytes);
       s.expose(2, more_address, 4096, 2);
       s.get(0, 1, 0, data_address, data_bytes);
       s.put(0, 2, 0, data_address, 4096);
       s.unexpose(1);
       s.unmap(data_address);
       s.get(0, 1, 0, more_address, 10);
       s.add(0, 2, 8, 3 << 8);
     }},
    {"without_memory",
     [](Scene& s) {
       s.share();
       const auto first = s.late_read(0, 1, 100);
       s.write(0, 1, data_address, 150);
       s.turn();
       s.place(first, more_address, 100);
       const auto second = s.read(0, 2, data_address + 1000, 500);
       s.unplace(second);
       s.unplace(second);
       s.write(0, 2, data_address, 200);
       s.turn();
       s.place(second, data_address + 1000, 200);
       s.cancel(s.late_read(-1, -1, 50));
       const auto third = s.late_read(2, -1, 4096);
       s.peer(0, 10);
       s.peer(4, 255);
       s.turn();
       s.place(third, data_address, 4096);
       s.late_read(0, 3, 10);
       s.write(0, 3, data_address, 10);
       s.leave();
     }},
    {"memory_that_nothing_waits_for",
     [](Scene& s) {
       s.share();
       s.place(s.read(0, 1, data_address, 100), data_address, 100);
     }},
    {"to_the_other_host",
     [](Scene& s) {
       s.share();
       s.write(2, 3, data_address, 300);
       s.write(2, 3, data_address, 30'000);
       s.peer(0, 10);
       s.peer(4, 255);
       s.peer(4, 255);
       s.read(2, -1, data_address + 1000, 500);
       s.peer(6 * 3 + 1, 20);
       s.peer(2 * 7 + 3, 200);
       s.read(-1, -1, data_address, 65'536, MessageFlags::from_end);
     }},
    {"pieces",
     [](Scene& s) {
       s.share();
       const Piece list[] = {{data_address + 1000, 100}, {more_address, 50}, {data_address + 3000, 0}};
       s.record(Record::data, std::uint16_t{0}, static_cast<std::uint8_t>(sizeof list), list);
       s.write(0, 1, data_address, 150, 3);
       s.write(2, 1, data_address, 150, 3);
       s.write(0, 1, data_address, 151, 3);
       s.read(0, 1, data_address + 5000, 1000);
     }},
    {"second_thoughts",
     [](Scene& s) {
       s.share();
       s.cancel(s.read(0, 1, data_address, 100));
       s.cancel(s.write(2, 1, data_address, 60'000));
       s.cancel(s.write(1, 1, data_address, 60'000));
       s.turn();
       s.hand_over(s.write(2, 2, data_address, 10'000), data_address + 20'000, 6000, 4000);
       const std::uint64_t twice = s.write(2, 3, data_address, 10'000);
       s.hand_over(twice, data_address + 40'000, 5000, 5000, MessageFlags::from_end);
       s.hand_over(twice, data_address + 20'000, 6000, 4000);
       s.peer(4, 200);
     }},
    {"unmapped_under_way",
     [](Scene& s) {
       s.share();
       s.write(2, 1, data_address, 50'000);
       s.write(1, 1, data_address, 50'000);
       s.unmap(data_address);
       s.unmap(more_address);
       s.turn();
       s.map(data_address, data_bytes, 0);
     }},
    {"strange_segments",
     [](Scene& s) {
       s.map(data_address, sizeof(Control), 2); // its own control segment
       s.write(1, 1, data_address, sizeof(Control));
       s.read(0, 1, data_address, 4096);
       s.write(0, 1, data_address + 100'000, 4096);
       s.map(0, data_bytes, 0);
       s.map(~std::uint64_t{0} - 100, data_bytes, 0);
       s.map(more_address * 2, more_bytes, 7);
     }},
    {"grown",
     [](Scene& s) {
       using namespace parc::shm;
       s.share();
       s.grow(1, bytes_of_block(1), 4);
       const std::uint64_t read = s.in_block(RequestKind::read, first_slot(1), 0);
       s.in_block(RequestKind::write, first_slot(1) + slots_in(1) / 2, 0);
       s.in_block(RequestKind::read, end_of_block(1) / 2 + 7, 2);
       s.cancel(read);
       s.turn();
       s.in_block(RequestKind::read, end_of_block(1), 0); // of a block that there is not
     }},
    {"grown_wrongly",
     [](Scene& s) {
       using namespace parc::shm;
       s.share();
       s.grow(0, bytes_of_block(1), 4);
       s.grow(2, bytes_of_block(2), 4); // not the next one
       s.grow(1, bytes_of_block(1) - 8, 4);
       s.grow(1, bytes_of_block(1), 0); // too small
       s.grow(1, bytes_of_block(1), 7); // none
       s.grow(~std::uint64_t{0}, 0, 4);
       s.turn();
       s.grow(1, bytes_of_block(1), 4);
       s.grow(2, bytes_of_block(2), 4); // too small for that
       s.second();
       s.in_block(RequestKind::read, control_slot + 1, 0); // between the blocks
     }},
    {"departures",
     [](Scene& s) {
       s.share();
       s.write(1, 1, data_address, 100);
       s.write(2, 1, data_address, 20'000);
       s.leave();
       s.second();
       s.read(0, 1, data_address, 100);
       s.read(0, 1, data_address, 100);
       s.abort();
       s.record(Record::end);
     }},
    {"over_itself",
     [](Scene& s) {
       s.share();
       s.read(0, 1, data_address, 100);
       s.write(0, 1, data_address + 30, 100);
       s.read(0, 2, data_address + 30, 30'000);
       s.write(0, 2, data_address, 30'000);
     }},
    {"left_and_gone",
     [](Scene& s) {
       s.at_once();
       s.share();
       s.read(0, 1, data_address, 100);
       s.write(0, 1, data_address + 200, 100);
       s.leave();
       s.record(Record::end);
     }},
    {"spawned",
     [](Scene& s) {
       using namespace std::string_view_literals;
       s.share();
       s.spawn("\0program\0argument\0"sv, 3, 1024);
       s.turn();
       s.spawn("fuzzed:2\0program\0"sv, 2, 1024);
       s.spawn("a:x\0program\0"sv, 2, 1024);
       s.spawn("no end"sv, 2, 1024);
       s.spawn("\0\0"sv, 2, 1024);
       s.spawn("\0program\0"sv, 300, 1024); // no room for the answer
       s.cancel(s.exit_of(3));
       s.exit_of(0);
       s.signal(0, 15);
       s.signal(3, 15);
       s.signal(1, 4711);
       s.leave();
     }},
    {"broken_ring",
     [](Scene& s) {
       s.second();
       s.record(Record::tail, std::uint64_t{5000});
     }},
    {"scribbles",
     [](Scene& s) {
       s.share();
       s.read(0, 1, data_address, 100);
       s.record(Record::control, std::uint32_t{64}, std::uint8_t{8}, std::uint64_t{40});
       s.record(Record::control, std::uint32_t{128}, std::uint8_t{16}, ~std::uint64_t{0}, ~std::uint64_t{0});
       s.record(Record::pipe, std::uint8_t{8}, std::uint64_t{1});
     }},
};

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_requests_corpus DIR\n");
    return 2;
  }
  Host host;
  for (const Named& named : scenes) {
    Scene scene;
    named.play(scene);
    {
      Programs programs(host);
      std::span<const std::uint8_t> input(scene.bytes());
      while (!input.empty()) programs.play(input);
    }
    std::ofstream(std::string(argv[1]) + "/" + named.name, std::ios::binary)
        .write(reinterpret_cast<const char*>(scene.bytes().data()),
               static_cast<std::streamsize>(scene.bytes().size()));
  }
}
