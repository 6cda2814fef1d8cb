// SPDX-License-Identifier: BSD-3-Clause
// make_train_corpus DIR: writes the trains that a real engine sends to the fuzz target, one file per scene.
#include "tests/fuzz/train_target.hpp"

#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

namespace {

using namespace parc::fuzz;

class OtherKernel : Listener {
public:
  OtherKernel() : engine_(settings(), *this) {
    link_ = engine_.add_link({fragment, peer_host, self_host});
    const auto there = static_cast<std::int32_t>(link_);
    first = engine_.add_endpoint(); // with the numbers that those over there have
    second = engine_.add_endpoint();
    engine_.add_group(std::vector<Address>{{there, first}, {here, first}, {there, second}, {here, second}});
  }

  std::uint64_t write(std::uint64_t endpoint, std::uint32_t to, std::uint64_t tag, std::uint64_t length) {
    return engine_.write(endpoint, {.destination = to,
                                    .tag = tag,
                                    .space = space(engine_, endpoint),
                                    .flags = when(length % 1000 == 0, MessageFlags::synchronous),
                                    .memory = memory(length)});
  }
  void get(std::uint64_t endpoint, std::uint32_t from, std::uint64_t window, std::uint64_t offset,
           std::uint64_t length, const std::optional<Rows>& rows = {}) {
    engine_.get(endpoint,
                {.target = from, .window = window, .offset = offset, .memory = memory(length), .rows = rows});
  }
  void put(std::uint64_t endpoint, std::uint32_t to, std::uint64_t window, std::uint64_t offset,
           std::uint64_t length, const std::optional<Rows>& rows = {}) {
    engine_.write(endpoint, {.destination = to,
                             .tag = window,
                             .data = offset,
                             .memory = memory(length),
                             .put = true,
                             .rows = rows});
  }
  void add(std::uint64_t endpoint, std::uint32_t to, std::uint64_t offset) {
    engine_.get(endpoint, {.target = to,
                           .window = 1,
                           .offset = offset,
                           .flags = MessageFlags::none,
                           .memory = {},
                           .atomic = Atomic{1, 0, Atomic::What::add, 8, 0, 0}});
  }
  void read(std::uint64_t endpoint, std::int64_t source, std::int32_t tag, std::uint64_t room) {
    ReadRequest request = read_request(source, tag);
    request.space = space(engine_, endpoint);
    request.memory = memory(room);
    engine_.read(endpoint, request);
  }

  // Lets both talk until nothing moves, and records what the target hears.
  void talk() {
    for (bool moved = true; moved;) {
      moved = hear(target_.say());
      target_.rest();
      moved |= hear(target_.say());
      moved |= speak();
      engine_.flush_acknowledgements();
      moved |= speak();
    }
  }
  // Says so many bytes of what it has to say, then the carrier ends.
  void break_after(std::size_t bytes) {
    speak(bytes);
    engine_.attach(link_);
    target_.attach();
    record_.insert(record_.end(), 2, 0);
  }
  void save(const std::string& path) const {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(record_.data()), static_cast<std::streamsize>(record_.size()));
  }
  Engine& engine() { return engine_; }
  [[nodiscard]] std::uint32_t link() const { return link_; }
  std::uint64_t first = 0, second = 0;

private:
  Pieces memory(std::uint64_t length) {
    memory_.push_back(std::make_unique<std::byte[]>(length));
    return {memory_.back().get(), length};
  }
  bool hear(std::vector<std::uint8_t> bytes) {
    const bool any = !bytes.empty();
    for (std::size_t taken = 0; taken < bytes.size();) {
      std::array<iovec, 8> places;
      const std::size_t count = engine_.plan_read(link_, places);
      std::size_t now = 0;
      for (std::size_t i = 0; i < count && taken + now < bytes.size(); ++i) {
        const std::size_t n = std::min(bytes.size() - taken - now, places[i].iov_len);
        std::memcpy(places[i].iov_base, bytes.data() + taken + now, n);
        now += n;
      }
      if (engine_.took(link_, now) != Refusal::none) std::abort();
      taken += now;
    }
    return any;
  }
  bool speak(std::size_t most = 65'535) {
    std::vector<std::uint8_t> train;
    for (const iovec& part : engine_.plan_write(link_)) {
      const auto* base = static_cast<const std::uint8_t*>(part.iov_base);
      train.insert(train.end(), base, base + std::min(part.iov_len, most - train.size()));
    }
    if (train.empty()) return false;
    engine_.wrote(link_, train.size());
    record_.push_back(static_cast<std::uint8_t>(train.size()));
    record_.push_back(static_cast<std::uint8_t>(train.size() >> 8));
    record_.insert(record_.end(), train.begin(), train.end());
    if (!target_.take(train)) std::abort();
    return true;
  }

  void begun(std::uint64_t, const Outcome&) override {}
  void progressed(std::uint64_t, const Progress&) override {}
  void finished(std::uint64_t, const Outcome&) override {}
  void drained(std::uint64_t) override {}
  bool place(std::uint64_t, const Place& place, bool, Pieces& there, std::uint64_t&) override {
    if (place.window != 1) return false;
    there = memory(place.length);
    return true;
  }

  std::vector<std::unique_ptr<std::byte[]>> memory_;
  Engine engine_;
  std::uint32_t link_ = 0;
  Target target_;
  std::vector<std::uint8_t> record_;
};

struct Scene {
  const char* name;
  std::function<void(OtherKernel&)> play;
};

const Scene scenes[] = {
    {"riding",
     [](OtherKernel& p) {
       for (std::int32_t tag = 0; tag < 4; ++tag) p.write(p.first, 0, tag, 8), p.write(p.second, 2, tag, 0);
     }},
    {"whole",
     [](OtherKernel& p) {
       p.write(p.first, 0, 1, 1500), p.write(p.second, 2, 2, 1030), p.write(p.first, 2, 5, 600);
     }},
    {"asked_for", [](OtherKernel& p) { p.write(p.first, 0, 1, 5000), p.write(p.second, 2, 2, 6500); }},
    {"answers",
     [](OtherKernel& p) {
       p.read(p.first, 0, 1, 50);
       p.read(p.second, 0, 2, 4000);
       p.read(p.first, 2, 3, 9000);
       p.read(p.engine().kernel(), 0, -1, 1000);
     }},
    {"late_answers",
     [](OtherKernel& p) {
       p.talk();
       p.read(p.first, 2, 3, 7000);
       p.talk();
       p.read(p.second, 0, -1, 3000);
     }},
    {"gets",
     [](OtherKernel& p) {
       p.get(p.first, 0, 1, 0, 10);
       p.get(p.first, 2, 1, 7000, 3000);
       p.get(p.second, 0, 1, 10'000, 0);
       p.get(p.second, 0, 1, 9999, 2);
       p.get(p.second, 2, 3, 0, 8);
     }},
    {"rows",
     [](OtherKernel& p) {
       p.get(p.first, 0, 1, 0, 96, Rows{8, 100});
       p.get(p.first, 2, 1, 9900, 4000, Rows{50, -70});
       p.get(p.second, 0, 1, 9990, 40, Rows{20, 0});
       p.put(p.first, 0, 1, 10, 96, Rows{8, 100});
       p.put(p.first, 2, 1, 5000, 4000, Rows{2000, -2400});
       p.put(p.second, 0, 1, 9990, 40, Rows{20, 30});
       p.break_after(300);
       p.talk();
     }},
    {"gets_of_who_goes",
     [](OtherKernel& p) {
       p.get(p.first, 0, 1, 0, 9000);
       p.get(p.second, 2, 1, 0, 9000);
       p.break_after(700);
       p.engine().kill(p.first);
       p.engine().leave(p.second);
     }},
    {"puts",
     [](OtherKernel& p) {
       p.put(p.first, 0, 1, 0, 10);
       p.put(p.first, 2, 1, 100, 9000);
       p.write(p.first, 2, 1, 100);
       p.get(p.first, 2, 1, 0, 300);
       p.add(p.first, 2, 8);
       p.add(p.first, 2, 9);
       p.add(p.second, 0, 0);
       p.put(p.first, 2, 1, 5000, 3000);
       p.put(p.second, 0, 1, 9999, 2);
       p.put(p.second, 0, 3, 0, 0);
       p.talk();
     }},
    {"puts_cut_off",
     [](OtherKernel& p) {
       p.put(p.first, 0, 1, 0, 9000);
       p.write(p.first, 0, 1, 2000);
       p.put(p.second, 2, 1, 0, 9000);
       p.break_after(3000);
       p.talk();
       p.engine().kill(p.first);
       p.talk();
     }},
    {"cancel",
     [](OtherKernel& p) {
       const std::uint64_t write = p.write(p.first, 2, 6, 9000);
       p.talk();
       p.engine().cancel(write);
     }},
    {"killed",
     [](OtherKernel& p) {
       p.write(p.first, 2, 6, 9000);
       p.write(p.first, 0, 1, 3000);
       p.talk();
       p.engine().kill(p.first);
     }},
    {"left",
     [](OtherKernel& p) {
       p.write(p.second, 0, 6, 400);
       p.engine().leave(p.second);
       p.engine().leave(p.first);
     }},
    {"resumed",
     [](OtherKernel& p) {
       p.talk();
       p.write(p.first, 0, 1, 1500), p.write(p.second, 2, 2, 6500), p.write(p.first, 0, 3, 80);
       p.break_after(30);
       p.talk();
       p.write(p.second, 0, 6, 3000);
       p.break_after(700);
       p.break_after(20);
     }},
    {"killed_in_between",
     [](OtherKernel& p) {
       p.talk();
       p.write(p.first, 0, 1, 1500), p.write(p.second, 2, 2, 6500), p.write(p.first, 0, 3, 80);
       p.break_after(900);
       p.engine().kill(p.first);
     }},
    {"kernels",
     [](OtherKernel& p) {
       p.write(p.engine().kernel(), p.link(), 3, 900), p.write(p.engine().kernel(), p.link(), 3, 80);
     }},
    {"many",
     [](OtherKernel& p) {
       for (int i = 0; i < 6; ++i) {
         for (std::uint32_t to : {0u, 2u}) p.write(p.first, to, 20, 20), p.write(p.second, to, 21, 250);
         p.talk();
       }
     }},
};

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_train_corpus DIR\n");
    return 2;
  }
  for (const Scene& scene : scenes) {
    OtherKernel peer;
    scene.play(peer);
    peer.talk();
    peer.save(std::string(argv[1]) + "/" + scene.name);
  }
}
