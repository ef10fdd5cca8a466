// regex_tables.h — what a pool of regular languages finds its terms by. For the files of regex_pool alone.
#pragma once

#include <array>
#include <string>
#include <unordered_map>

#include "core/grammar/regex_pool.h"

namespace weir::core::grammar {

struct hash_print {
  std::size_t operator()(const regex_print& p) const noexcept { return p.low; }
};

struct regex_pool::tables {
  std::unordered_map<regex_print, regex_id, hash_print> by_print;
  std::unordered_map<std::string, std::uint32_t> partitions;  // by the 256 classes
  std::unordered_map<std::uint64_t, regex_id> cut;            // horizon << 32 | term
  std::unordered_map<std::uint64_t, bool> loops;      // body << 32 | rest: whether loop_over() finds it
  std::array<regex_id, 256> single{};                 // byte(); `nothing`: not made yet
  std::unordered_map<std::string, regex_id> by_name;  // remembered()
  std::vector<row> rows;
};

}  // namespace weir::core::grammar
