// token_counts.h — which tokens a sequence has, and how often its output has each; penalties read it.
//
// An open-addressing table, sized once for all tokens that the sequence can ever have. Adding never
// allocates, and iteration costs the distinct tokens, not the vocabulary.
//
// Thread safety: the owner's thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/token.h"

namespace weir::core {

class token_counts {
 public:
  struct entry {
    token_id id;
    std::uint32_t in_output;  // 0: only the prompt has it
  };

  token_counts() = default;
  // Room for `distinct` different tokens.
  explicit token_counts(std::uint32_t distinct);

  bool enabled() const noexcept { return !slots_.empty(); }
  void add(token_id id, bool output);
  std::span<const entry> entries() const noexcept { return entries_; }

 private:
  std::vector<std::int32_t> slots_;  // [power of two, at least twice the entries] index into entries_, or -1
  std::vector<entry> entries_;       // in order of first appearance
};

}  // namespace weir::core
