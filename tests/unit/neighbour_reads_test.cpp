// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/neighbour_reads.hpp"

#include "tests/unit/program_test.hpp"

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(neighbour_reads)

namespace {

using shm::Owner, shm::With;
using Teller = NeighbourReads::Teller;

// One of two programs of a host, as far as it reads what neighbours send.
struct Neighbour {
  Neighbour(test::ProgramHost& host, Letterboxes& letterboxes, std::uint64_t endpoint)
      : member{.job = 5, .rank = 0, .size = 2, .endpoint = endpoint}, reads({.engine = host.engine,
                                                                             .letterboxes = letterboxes,
                                                                             .slots = slots,
                                                                             .events = events,
                                                                             .member = member}) {}

  void open(bool wanted = true) { reads.open(wanted, tables); }
  OperationTable::Slot& shared(std::uint64_t id) { // with neighbours, and in the engine
    OperationTable::Slot* const slot = slots.take(id);
    BOOST_REQUIRE(slot != nullptr);
    slot->with = With::neighbours;
    return *slot;
  }

  Sessions::Member member;
  Sessions::Events events;
  OperationTable slots;
  std::unique_ptr<shm::Control> control = std::make_unique<shm::Control>();
  shm::Tables tables{*control};
  NeighbourReads reads;
};

struct Neighbours : test::ProgramHost {
  Letterboxes letterboxes{shm::Progress::sender};
  Neighbour first{*this, letterboxes, 1}, second{*this, letterboxes, add_program(1)};
  std::int32_t row = engine.add_row(1, {protocol::here, 2}); // of the second, for the first

  shm::Letterbox& memory(const Neighbour& of) { return *letterboxes.find(of.member.endpoint)->memory; }
  // A read of the second that the first has taken, and the first's write.
  shm::Request take(std::uint64_t id) {
    shm::Letterbox& box = memory(second);
    shm::PostedRead& posted = box.owner.posted[entry];
    posted.id = id;
    posted.flags = ~protocol::MessageFlags::none;
    posted.pieces = 2;
    posted.address = 4096;
    posted.length = 100;
    box.all.owners[shm::slot_of(id)] = shm::owner_word(shm::generation_of(id), Owner::neighbour);
    shm::Request write{};
    write.kind = shm::RequestKind::write;
    write.with = With::taken;
    write.id = shm::id_of(1, shm::read_slots);
    write.write = {70, 0, id};
    write.entry = entry;
    return write;
  }
  static constexpr std::uint32_t entry = 4;
};

const std::uint64_t read_id = shm::id_of(3, 9);

} // namespace

BOOST_AUTO_TEST_CASE(a_pair_that_wants_it_has_a_way) {
  Neighbours host;
  BOOST_TEST(!host.first.reads.has_letterbox());
  host.first.open();
  host.second.open();
  BOOST_TEST(host.first.reads.has_letterbox());
  BOOST_TEST(host.first.reads.letterbox().number == host.letterboxes.find(1)->place.number);
  BOOST_TEST(host.first.reads.endpoint_in(host.row).value() == 2u);
  BOOST_TEST(host.first.reads.queue_to(host.row, &host.second.reads) == 0);
  BOOST_TEST(host.first.reads.queue_to(host.row, &host.second.reads) == 0);
  const shm::SenderEntry& from = host.memory(host.second).kernel.from[0];
  BOOST_TEST(host.engine.address(2, from.row).value().number == 1u);
}

// It may attach later, and finds what has been sent.
BOOST_AUTO_TEST_CASE(a_neighbour_that_is_not_attached_has_a_way_to_it) {
  Neighbours host;
  host.first.open();
  BOOST_TEST(host.first.reads.queue_to(host.row, nullptr) == 0);
  host.second.open(false);
  BOOST_TEST(host.second.reads.has_letterbox());
}

BOOST_AUTO_TEST_CASE(pairs_that_have_no_way) {
  Neighbours host;
  host.first.open();
  host.second.open(false);
  BOOST_TEST(!host.second.reads.has_letterbox());
  BOOST_TEST(host.first.reads.queue_to(host.row, &host.second.reads) == -1);
  BOOST_TEST(host.second.reads.queue_to(0, &host.first.reads) == -1);

  const auto link = static_cast<std::int32_t>(host.engine.add_link({}));
  const std::int32_t elsewhere = host.engine.add_row(1, {link, 1});
  for (const std::int32_t nobody : {elsewhere, elsewhere + 1, -1}) {
    BOOST_TEST(!host.first.reads.endpoint_in(nobody).has_value());
    BOOST_TEST(host.first.reads.queue_to(nobody, nullptr) == -1);
  }
  const std::uint64_t third = host.add_program(2);
  const std::int32_t gone = host.engine.add_row(1, {protocol::here, third});
  host.engine.leave(third);
  BOOST_TEST(host.first.reads.queue_to(gone, nullptr) == -1);
  host.first.reads.refuse();
  BOOST_TEST(host.first.reads.queue_to(host.row, nullptr) == -1);
}

BOOST_AUTO_TEST_CASE(a_taken_read_is_as_its_reader_has_published_it) {
  Neighbours host;
  host.second.open();
  const shm::Request write = host.take(read_id);
  BOOST_TEST(!host.second.reads.is_known(read_id));
  const auto read = host.second.reads.take(write, 6);
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST((read->kind == shm::RequestKind::read && read->with == With::taken));
  BOOST_TEST((read->id == read_id && read->read.tag == write.id && read->peer == 6));
  BOOST_TEST((read->address == 4096u && read->length == 100u && read->pieces == 2u));
  BOOST_TEST((read->flags == (protocol::MessageFlags::from_end | protocol::MessageFlags::queued)));
  const OperationTable::Slot* const slot = host.second.slots.find(read_id);
  BOOST_REQUIRE(slot != nullptr);
  BOOST_TEST((slot->with == With::taken && slot->tag == 70u));
  BOOST_TEST(NeighbourReads::is_matched(read_id, *slot));
  BOOST_TEST(host.second.reads.is_known(read_id));
  BOOST_TEST(host.second.reads.is_known(shm::id_of(2, 9))); // one that had its member before
  BOOST_TEST(!host.second.reads.is_known(shm::id_of(4, 9)));
  BOOST_TEST(!host.second.reads.take(write, 6).has_value()); // twice
}

// It may compute when its kernel must know what it has posted.
BOOST_AUTO_TEST_CASE(what_is_published_is_found) {
  Neighbours host;
  BOOST_TEST(!host.second.reads.must_ask_for_reads()); // there is no letterbox
  host.first.open();
  host.second.open();
  BOOST_TEST(!host.second.reads.must_ask_for_reads());
  host.engine.add_row(2, {static_cast<std::int32_t>(host.engine.add_link({})), 1});
  BOOST_TEST(host.second.reads.must_ask_for_reads());
  host.second.reads.ask_for_reads();
  BOOST_TEST(!host.second.reads.must_ask_for_reads());
  BOOST_TEST(host.memory(host.second).kernel.must_know.load() == 1u);
  BOOST_TEST(host.first.reads.queue_to(host.row, &host.second.reads) == 0);

  shm::Letterbox& box = host.memory(host.second);
  const auto post = [&](std::uint64_t number, std::int32_t row, Owner owner) {
    const std::uint64_t at = box.owner.posts.load(), id = shm::id_of(3, number);
    shm::PostedRead& posted = box.owner.posted[at % shm::read_slots];
    posted.id = id;
    posted.tag = 100 + number;
    posted.row = row;
    posted.space = protocol::Space::programs;
    posted.length = number;
    posted.address = 4096;
    box.all.owners[number] = shm::owner_word(3, owner);
    box.owner.posts = at + 1;
  };
  const std::int32_t of_first = box.kernel.from[0].row;
  post(1, -1, Owner::nobody);
  post(2, of_first, Owner::nobody); // no other host answers it
  post(3, of_first + 9, Owner::nobody);
  post(4, -1, Owner::neighbour);
  post(5, -1, Owner::library);
  post(6, -1, Owner::nobody);
  (void)host.second.shared(shm::id_of(3, 6)); // it was shared
  (void)host.second.slots.take(shm::id_of(2, 7));
  host.second.slots[7].unplaced = 3;
  host.second.slots[7].busy = false;
  post(7, -1, Owner::nobody);
  std::vector<shm::Request> found;
  const auto find = [&](std::size_t most) {
    found.clear();
    host.second.reads.each_published(host.second.reads.published(), [&](const shm::Request& read) {
      found.push_back(read);
      return found.size() < most;
    });
    return found.size();
  };
  BOOST_TEST(find(1) == 1u);
  BOOST_REQUIRE(find(9) == 3u);
  const std::uint64_t numbers[] = {1, 3, 7};
  for (std::size_t i = 0; i < found.size(); ++i) {
    BOOST_TEST((found[i].id == shm::id_of(3, numbers[i]) && found[i].read.tag == 100 + numbers[i]));
    BOOST_TEST((found[i].with == With::neighbours && found[i].kind == shm::RequestKind::read));
    BOOST_TEST(found[i].pieces == (numbers[i] == 7 ? shm::no_memory_yet : 0));
  }
  box.owner.first = 2;
  BOOST_TEST(find(9) == 2u);
  box.kernel.senders = UINT32_MAX; // as its program may write there
  BOOST_TEST(find(9) == 2u);
}

BOOST_AUTO_TEST_CASE(what_a_neighbour_claims_is_checked) {
  Neighbours host;
  BOOST_TEST(!host.second.reads.take({}, 0).has_value()); // there is no letterbox
  host.second.open();
  const shm::Request write = host.take(read_id);
  shm::Request other = write;
  other.entry = Neighbours::entry + 1; // where another is published, or none
  BOOST_TEST(!host.second.reads.take(other, 0).has_value());
  other = write;
  other.write.read = shm::id_of(3, shm::read_slots);
  BOOST_TEST(!host.second.reads.take(other, 0).has_value());
  for (const std::uint64_t word :
       {shm::owner_word(3, Owner::library), shm::owner_word(2, Owner::neighbour)}) {
    host.memory(host.second).all.owners[9] = word;
    BOOST_TEST(!host.second.reads.take(write, 0).has_value());
  }
  BOOST_TEST(host.second.slots.find(read_id) == nullptr);
  host.memory(host.second).all.owners[9] = shm::owner_word(3, Owner::neighbour);
  other = write;
  other.entry += shm::read_slots; // is masked
  BOOST_TEST(host.second.reads.take(other, 0).has_value());
}

BOOST_AUTO_TEST_CASE(a_read_whose_memory_was_wanted_back_is_taken_without) {
  Neighbours host;
  host.second.open();
  const shm::Request write = host.take(read_id);
  host.second.slots[9].unplaced = 3;
  BOOST_TEST(host.second.reads.take(write, 0).value().pieces == shm::no_memory_yet);
}

BOOST_AUTO_TEST_CASE(what_was_shared_is_withdrawn) {
  Neighbours host;
  host.second.open();
  for (const std::uint64_t id : {read_id, shm::id_of(1, 10)})
    host.second.shared(id).handle = host.engine.read(2, {.cookie = id, .memory = {}});
  host.second.reads.withdraw(shm::id_of(2, 10)); // is not there
  BOOST_TEST(host.finished_.empty());
  host.second.reads.withdraw(shm::id_of(1, 10));
  BOOST_TEST((host.finished_.at(shm::id_of(1, 10)).fault == protocol::Fault::canceled));
  // The kernel's read ends where a neighbour takes it; here nobody frees its member.
  BOOST_TEST(!host.second.reads.take(host.take(read_id), 0).has_value());
  BOOST_TEST((host.finished_.at(read_id).fault == protocol::Fault::canceled));
  host.second.slots[10].with = With::taken;
  host.second.reads.withdraw(shm::id_of(1, 10));
  BOOST_TEST(host.finished_.size() == 2u);
}

BOOST_AUTO_TEST_CASE(who_has_a_read_tells_of_its_end) {
  Neighbours host;
  host.second.open();
  OperationTable::Slot& slot = host.second.shared(read_id);
  std::atomic<std::uint64_t>& word = host.memory(host.second).all.owners[9];
  const auto& changes = host.memory(host.second).kernel.changes;
  const auto teller = [&](protocol::Fault fault) {
    return host.second.reads.teller(9, slot, {.fault = fault, .departure = protocol::Departure::killed});
  };
  const protocol::OwnerWord owner = host.second.reads.owner_word(9, slot);
  BOOST_TEST(owner.word == &word);

  word = shm::owner_word(3, Owner::nobody);
  BOOST_TEST((teller(protocol::Fault::canceled) == Teller::kernel));
  BOOST_TEST(word == shm::owner_word(3, Owner::kernel));
  for (const auto fault : {protocol::Fault::none, protocol::Fault::peer, protocol::Fault::canceled})
    BOOST_TEST((teller(fault) == Teller::kernel));

  word = shm::owner_word(3, Owner::library);
  for (const auto fault : {protocol::Fault::taken, protocol::Fault::peer, protocol::Fault::canceled})
    BOOST_TEST((teller(fault) == Teller::library));
  BOOST_TEST(changes == 0u);

  word = shm::owner_word(3, Owner::nobody);
  BOOST_TEST((teller(protocol::Fault::peer) == Teller::library_of_departure));
  const auto killed = static_cast<std::uint32_t>(protocol::Departure::killed);
  BOOST_TEST(word == shm::owner_word(3, Owner::given_up, killed));
  BOOST_TEST(changes == 1u);

  slot.with = With::nobody;
  BOOST_TEST((host.second.reads.owner_word(9, slot).word == nullptr));
  BOOST_TEST((teller(protocol::Fault::peer) == Teller::kernel));
}

BOOST_AUTO_TEST_CASE(owner_words_behind_the_first_block) {
  Neighbours host;
  std::vector<std::byte> block(shm::bytes_of_block(1) + 64);
  host.second.tables.add(block.data() + 64 - reinterpret_cast<std::uintptr_t>(block.data()) % 64);
  host.second.slots.grow(1);
  host.second.open();
  const std::uint64_t number = shm::first_slot(1) + 2;
  const OperationTable::Slot& slot = host.second.shared(shm::id_of(1, number));
  BOOST_TEST(host.second.reads.owner_word(number, slot).word == &host.second.tables.owner(number));
}

BOOST_AUTO_TEST_CASE(a_message_that_is_left_unread_is_told_with_its_writer) {
  Neighbours host;
  std::vector<std::pair<protocol::Address, protocol::Outcome>> unread;
  host.first.events.unread = [&](std::uint64_t endpoint, const protocol::Address& from,
                                 const protocol::Outcome& message) {
    BOOST_TEST(endpoint == 1u);
    unread.emplace_back(from, message);
  };
  shm::Request request{};
  request.peer = 40; // who is nobody
  host.first.reads.leave_unread(request);
  BOOST_TEST(unread.empty());
  request.peer = host.row;
  request.read.tag = 7;
  request.length = 100;
  host.first.reads.leave_unread(request);
  BOOST_REQUIRE(unread.size() == 1u);
  BOOST_TEST(unread[0].first.number == 2u);
  BOOST_TEST((unread[0].second.tag == 7u && unread[0].second.total == 100u));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
