// byte_pieces.h — the pieces that stand for single bytes, spelled "<0x0A>".
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "core/text/tokenizer/vocabulary.h"

namespace weir::core {

class byte_pieces {
 public:
  explicit byte_pieces(const vocabulary& pieces);

  // Appends the pieces of all bytes. false: a byte has none, and nothing is appended.
  bool append(std::string_view bytes, std::vector<token_id>& out) const;
  bool all() const noexcept;  // every byte has a piece

 private:
  std::array<token_id, 256> ids_;  // [byte] -1: none
};

}  // namespace weir::core
