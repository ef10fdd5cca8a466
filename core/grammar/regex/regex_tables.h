// regex_tables.h — the look-up tables of a regex_pool. For the files of regex_pool alone.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/grammar/id_table.h"
#include "core/grammar/regex/regex_pool.h"

namespace weir::core::grammar {

struct regex_pool::tables {
  id_table by_print;
  std::unordered_map<std::string, std::uint32_t> partitions;  // by the 256 classes
  std::unordered_map<std::string, std::uint32_t> by_sets;     // partitions, by the sets that they are made of
  std::unordered_map<std::string, std::uint32_t> joint;       // partitions, by those that they join
  std::unordered_map<std::uint64_t, regex_id> cut;            // horizon << 32 | term
  std::unordered_map<std::uint64_t, bool> loops;              // of loop_over(): body << 1, rest << 1 | 1
  std::unordered_map<regex_id, bool> open;                    // open_to() the plain characters
  std::array<regex_id, 256> single{};                         // byte(); `nothing`: not made yet
  std::unordered_map<std::string, regex_id> by_name;          // remembered()
  std::unordered_set<const automaton*> automata;              // those that hold() has counted
  std::vector<row> rows;
};

}  // namespace weir::core::grammar
