// gguf_architectures.h — the architectures of GGUF files, one row of data each: which family of models
// (core/model/families.h) computes the same, and which of its settings stand under which key.
//
// Norms of GGUF files are what a row is multiplied by: where a family multiplies by 1 + weight, the 1 is in
// the file already. Keys are written here without the architecture's name and the dot in front of them.
//
// Thread safety: constants; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::core {

// Where a key is missing: the number changes nothing, the file is refused, or the family's default holds.
enum class if_missing { neutral, refused, of_family };

// A number that config.json has under a name of its own. A 0 in the file means that there is no such number.
struct gguf_number {
  std::string_view key, config;
  if_missing missing = if_missing::neutral;
};

// Layers with a sliding window. cycle: all but every n-th layer, or those that a key lists.
enum class gguf_windows { none, all_layers, cycle };

struct gguf_architecture {
  std::string_view name;           // general.architecture
  std::string_view family;         // a name of families.h
  std::string_view windowed = {};  // the family of a file with a window, where it is another
  std::string_view mixture = {};   // the family of a file with experts, where it is another
  // A rotation turns neighbouring elements of a head, and not element i with i + half: the order of the rows
  // of queries and keys.
  bool neighbours = false;
  bool fused_up = false;                   // ffn_up has the rows of the gate in front of its own
  bool part_turns = false;                 // rope.dimension_count may be less than a head
  bool may_norm_heads = false;             // where the files have norms of heads
  bool may_not_turn = false;               // rope.scaling.finetuned false: no layer turns
  bool exact_yarn = false;                 // the ends of yarn's ramp are no whole pairs
  bool growing_queries = false;            // attention.temperature_scale: queries grow with the position
  std::string_view mlp_norm = "ffn_norm";  // the norm in front of the feed-forward
  std::span<const gguf_number> numbers = {};
  std::string_view other_keys = " ";  // that change nothing, with spaces around each
  std::string_view implied = "{}";    // JSON: keys of config.json that every file of the architecture means
  gguf_windows windows = gguf_windows::none;
  bool window_needed = false;
  std::uint32_t window = 0;      // where no key says; 0: none
  std::uint32_t full_every = 0;  // cycle: layer i is full where i + 1 is a multiple of this
  double window_theta = 0;       // rope.freq_base_swa, where no key says; 0: as rope.freq_base
  // Queries are scaled by the root of a head's elements, but in the model of this many layers by that of
  // hidden / heads: no key says so. 0: as the family does.
  std::uint32_t wide_scale_layers = 0;
};

// Null if there is none of this name.
const gguf_architecture* find_gguf_architecture(std::string_view name);

// The names of all, separated by commas.
std::string gguf_architecture_names();

}  // namespace weir::core
