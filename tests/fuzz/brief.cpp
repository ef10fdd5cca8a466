// Runs a fuzz target without a fuzzer: on its corpus, and then on a bounded number of inputs that are mutated
// from the corpus. So each test run builds every target and passes every corpus entry. All targets are in one
// program here, which names each target's function by its file.
//
//   fuzz_brief TARGET CORPUS_DIR RUNS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/seed.h"

#define WEIR_FUZZ_TARGET(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size);
#include "fuzz_targets.inc"
#undef WEIR_FUZZ_TARGET

namespace {

using target = int (*)(const std::uint8_t*, std::size_t);

const std::map<std::string, target> targets = {
#define WEIR_FUZZ_TARGET(name) {#name, fuzz_##name},
#include "fuzz_targets.inc"
};

using bytes = std::vector<std::uint8_t>;

std::vector<bytes> read_corpus(const char* dir) {
  std::vector<bytes> all;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    std::ifstream in(entry.path(), std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return all;
}

// A few random edits: overwrite, insert, erase, repeat a piece, or splice in a piece of another entry.
bytes mutated(const std::vector<bytes>& corpus, std::mt19937_64& random) {
  bytes b = corpus[random() % corpus.size()];
  const auto place = [&] { return b.begin() + static_cast<std::ptrdiff_t>(random() % (b.size() + 1)); };
  for (auto edits = 1 + random() % 4; edits > 0; --edits) {
    const bytes& other = random() % 2 ? b : corpus[random() % corpus.size()];
    const auto from = other.empty() ? 0 : random() % other.size();
    const auto length = other.empty() ? 0 : random() % std::min<std::size_t>(other.size() - from, 32);
    const bytes piece(other.begin() + static_cast<std::ptrdiff_t>(from),
                      other.begin() + static_cast<std::ptrdiff_t>(from + length));
    switch (random() % 4) {
      case 0: b.insert(place(), piece.begin(), piece.end()); break;
      case 1: b.insert(place(), static_cast<std::uint8_t>(random())); break;
      case 2: {
        const auto at = place();
        b.erase(at, at + static_cast<std::ptrdiff_t>(random() %
                                                     (std::min<std::ptrdiff_t>(b.end() - at, 16) + 1)));
        break;
      }
      default:
        if (!b.empty()) b[random() % b.size()] = static_cast<std::uint8_t>(random());
    }
  }
  return b;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || !targets.contains(argv[1]))
    return std::fprintf(stderr, "usage: %s TARGET CORPUS_DIR RUNS\n", argv[0]), 2;
  const target run = targets.at(argv[1]);
  const auto corpus = read_corpus(argv[2]);
  if (corpus.empty()) return std::fprintf(stderr, "%s: no corpus\n", argv[2]), 2;
  for (const auto& b : corpus) run(b.data(), b.size());
  const auto runs = std::strtoull(argv[3], nullptr, 10);
  std::mt19937_64 random(weir::tests::drawn_seed(1));
  for (unsigned long long i = 0; i < runs; ++i) {
    const auto b = mutated(corpus, random);
    run(b.data(), b.size());
  }
  std::printf("%zu corpus entries and %llu mutations\n", corpus.size(), runs);
}
