// SPDX-License-Identifier: BSD-3-Clause
// make_control_corpus DIR: writes every control message to the fuzz target, with something in each of its
// fields.
#include "control/frames.hpp"
#include "control/words/door.hpp"
#include "tests/fuzz/control_target.hpp"
#include "tests/support/control_messages.hpp"

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace parc;
using namespace parc::control;
using nlohmann::json;

// What may stand in fields; of those that one takes it gets the last.
std::vector<json> values() {
  RankState rank;
  rank.operations.emplace_back();
  rank.backlog = {1, 2, 3, 4, 5, 6, 7};
  const HostQuestion question{
      .job = 1, .signal = 15, .hosts = {{{"a", "b:7272"}}}, .reach = {{HostToReach{.name = "a"}}}};
  const HostAnswer answer{.version = "1",
                          .jobs = {JobRow{.program = "p"}},
                          .waiting = {WaitingJob{}},
                          .killed = true,
                          .tried = {{HostTried{.name = "a"}}}};
  std::vector<json> all{true, 0, 1, "text", {1, 2, 3}, {"a", "b"}, {{"a", "b"}}};
  all.push_back({"a", {"b", "c", 7}}); // hosts to ask
  put_value(all.emplace_back(), std::vector{kernel::UnreadMessage{.to = 1}});
  put_value(all.emplace_back(), std::vector{rank});
  put_value(all.emplace_back(), question);
  put_value(all.emplace_back(), answer);
  put_value(all.emplace_back(), *answer.tried);
  return all;
}

template <class Message> json filled() {
  json message = to_json(Message());
  for (const Field& field : Message::fields()) {
    for (const json& value : values()) {
      json with = message;
      with[field.name] = value;
      if (from_json<Message>(with)) message = std::move(with);
    }
  }
  return message;
}

template <class Message> std::string payload(json& message) {
  if constexpr (requires(Message each) { each.program; }) {
    Message with;
    const std::string texts = encode_program({.arguments = {"p", "q"},
                                              .environment = {"A=1"},
                                              .directory = "/",
                                              .limits = {{1, 2, 3}},
                                              .apps = {{0, {"p", "q"}}, {1, {"r"}, "~/d", {"B=2"}}}},
                                             with.program);
    message.update(put_fields(program_fields<&Message::program>(), &with));
    return texts;
  } else if constexpr (HasPayload<Message>) {
    return {"a\0b\0", 4};
  } else {
    return {};
  }
}

class Corpus {
public:
  explicit Corpus(std::string directory) : directory_(std::move(directory)) {}

  void add(fuzz::Form form, std::uint8_t more, std::string_view name, std::string_view bytes) {
    std::ofstream file(fmt::format("{}/{:03}-{}", directory_, ++files_, name), std::ios::binary);
    file << static_cast<char>(form) << static_cast<char>(more) << bytes;
    if (!file.flush()) failed_ = true;
  }
  [[nodiscard]] bool failed() const { return failed_; }

private:
  std::string directory_;
  unsigned files_ = 0;
  bool failed_ = false;
};

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_control_corpus DIR\n");
    return 2;
  }
  Corpus corpus(argv[1]);
  std::string frames; // one behind the other
  const auto each = [&]<class Message>(fuzz::Form form) {
    json message = filled<Message>();
    const std::string bytes = payload<Message>(message);
    const std::string text =
        form == fuzz::Form::posted ? encode_posted(message, bytes) : encode_frame(message, bytes);
    corpus.add(form, 255, name(Message::kind), text);
    const auto packed = json::to_cbor(message);
    corpus.add(fuzz::Form::object, static_cast<std::uint8_t>(bytes.size()), name(Message::kind),
               bytes + std::string(packed.begin(), packed.end()));
    if (form == fuzz::Form::frames) frames += text;
  };
  Kernels::each([&]<class Message> { each.template operator()<Message>(fuzz::Form::posted); });
  Tools::each([&]<class Message> { each.template operator()<Message>(fuzz::Form::frames); });
  corpus.add(fuzz::Form::frames, 6, "all", frames);
  std::string strange = "\x1b"; // which is cut off in the middle of a character
  for (int i = 0; i < 50; ++i) strange += "\xc2\x9b";
  corpus.add(fuzz::Form::posted, 0, "strange_member",
             encode_posted({{"kind", "go"}, {"number", 1}, {strange, 1}}));
  corpus.add(fuzz::Form::words, 6, "hosts", "a:2,b:1");
  corpus.add(fuzz::Form::words, 0, "wish",
             door::joiner_says({"job", "host", "1", "2"}).substr(door::begin_of_wish));
  corpus.add(fuzz::Form::words, 0, "refusal", door::refusal_says(-3, "it is full").substr(1));
  if (!corpus.failed()) return 0;
  std::fprintf(stderr, "make_control_corpus: cannot write into %s\n", argv[1]);
  return 1;
}
