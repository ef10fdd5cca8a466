// scored_pieces.h — a vocabulary whose pieces have scores, as SentencePiece's models and GGUF files hold it.
//
// Thread safety: plain data; any thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/token.h"

namespace weir::core {

// The values are those of the files.
enum class piece_kind { normal = 1, unknown, control, user_defined, unused, byte };

struct scored_piece {
  std::string_view text;  // refers to the file's contents
  double score = 0;
  piece_kind kind = piece_kind::normal;
};

// Every text has its pieces compared with each of its places, so a longer one is refused.
inline constexpr std::size_t most_piece_bytes = 512;

struct scored_pieces {
  std::vector<scored_piece> all;  // [id]
  std::optional<token_id> unknown;
  bool byte_fallback = false;  // what has no piece becomes byte pieces such as <0x0A>
};

}  // namespace weir::core
