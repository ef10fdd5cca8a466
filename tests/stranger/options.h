// options.h — what the program is told on its command line. Plain data: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/support/seed.h"

namespace weir::stranger {

struct options {
  // rounds against a server of our own
  std::string weir;
  std::string model = "sim";  // or a model's directory
  bool keys = false;
  std::string kind;  // rounds of this kind only; empty: of all
  std::uint64_t seed = tests::drawn_seed(1);
  std::size_t seconds = 15;
  std::size_t rounds = 0;         // 0: as many as there is time for
  std::size_t patience_s = 10;    // until a round's traces have to be gone
  std::size_t address_space = 0;  // bytes that the server may map; 0: any
  std::size_t resident = 0;       // bytes that it may have resident; 0: any
  std::size_t surge =
      256 << 20;  // bytes by which it may grow in a round; a flood an eighth, greed half of it
  // Bytes by which it may have grown for good: 64 MiB each for what masks of a tokenizer remember and for a
  // constraint that is being used, and as much again for what the allocator keeps of them.
  std::size_t growth = 256 << 20;
  std::size_t descriptors = 0;    // that it may have open; 0: the hard limit

  // an attack on somebody else's
  std::string attack;  // 127.0.0.1:PORT
  std::string key;
  std::size_t slow = 0, mute = 0, hostile = 0;  // connections
  std::size_t messages_per_s = 100;             // of the hostile ones together
  std::uint32_t from = 0x7F000001;
};

// Nothing, and a line to stderr, where the command line makes no sense.
std::optional<options> read_options(int argc, char** argv);

// The command line that does one round again.
std::string replay_line(const options& o, std::uint64_t seed);

}  // namespace weir::stranger
