// SPDX-License-Identifier: BSD-3-Clause
// replay [--mutations N] [--from SEED] DIR...: without libFuzzer, runs a fuzz target over every file of its
// corpus and then over N inputs made from them, each from a seed that is printed should it be the last.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

void run(const Input& input) {
  // A copy of exactly its length, so that the sanitizer sees a look past the end.
  const auto exact = std::make_unique<std::uint8_t[]>(input.size());
  if (!input.empty()) std::memcpy(exact.get(), input.data(), input.size());
  LLVMFuzzerTestOneInput(exact.get(), input.size());
}

// Fields are changed to likely values, stretches are repeated, dropped, or taken from another input.
Input mutated(const std::vector<Input>& corpus, std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return n == 0 ? 0 : random() % n; };
  Input input = corpus[below(corpus.size())];
  for (std::uint64_t changes = 1 + below(4); changes != 0 && !input.empty(); --changes) {
    const std::size_t at = below(input.size());
    switch (below(5)) {
    case 0: input[at] = static_cast<std::uint8_t>(random()); break;
    case 1: { // a field; the headers are at the front of a train: look for one
      static constexpr std::uint8_t magic[] = {0x50, 0x74, 0x72, 0x6e};
      const auto found = std::search(input.begin() + static_cast<long>(at), input.end(), magic, magic + 4);
      const std::size_t from = found != input.end() ? static_cast<std::size_t>(found - input.begin()) : at;
      const std::size_t field = from + below(200) / 4 * 4;
      const std::size_t width = std::size_t{1} << below(4);
      if (field + width > input.size()) break;
      std::uint64_t value = 0;
      std::memcpy(&value, &input[field], width);
      const std::uint64_t choices[] = {0,          value + 1,
                                       value - 1,  value ^ (std::uint64_t{1} << below(8 * width)),
                                       below(600), ~std::uint64_t{0} >> below(64)};
      value = choices[below(6)];
      std::memcpy(&input[field], &value, width);
      break;
    }
    case 2: {
      const Input& other = corpus[below(corpus.size())];
      const std::size_t from = below(other.size());
      input.insert(input.begin() + static_cast<long>(at), other.begin() + static_cast<long>(from),
                   other.end());
      break;
    }
    case 3:
      input.erase(input.begin() + static_cast<long>(at),
                  input.begin() + static_cast<long>(at + below(input.size() - at)));
      break;
    case 4: {
      const Input again(input.begin() + static_cast<long>(at),
                        input.begin() + static_cast<long>(at + below(input.size() - at)));
      input.insert(input.begin() + static_cast<long>(at), again.begin(), again.end());
      break;
    }
    }
  }
  if (input.size() > 65'536) input.resize(65'536);
  return input;
}

std::uint64_t seed = 0;

void say_seed(int) {
  char text[64];
  const int n = std::snprintf(text, sizeof text, "replay: crashed at --from %llu\n",
                              static_cast<unsigned long long>(seed));
  if (write(STDERR_FILENO, text, static_cast<std::size_t>(n)) != n) _exit(2);
  std::signal(SIGABRT, SIG_DFL);
}

} // namespace

int main(int argc, char** argv) {
  std::vector<Input> corpus;
  std::uint64_t mutations = 0, from = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if ((argument == "--mutations" || argument == "--from") && i + 1 < argc) {
      (argument == "--from" ? from : mutations) = std::strtoull(argv[++i], nullptr, 10);
      continue;
    }
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(argument)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      std::ifstream stream(file, std::ios::binary);
      corpus.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    }
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "replay: no corpus; usage: replay [--mutations N] [--from SEED] DIR...\n");
    return 2;
  }
  std::signal(SIGABRT, say_seed);
  for (const Input& input : corpus) run(input);
  for (seed = from; seed < from + mutations; ++seed) {
    std::mt19937_64 random(seed);
    run(mutated(corpus, random));
  }
  std::printf("%zu inputs of the corpus and %llu made from them\n", corpus.size(),
              static_cast<unsigned long long>(mutations));
}
