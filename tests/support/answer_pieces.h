// answer_pieces.h — pieces of answers for tests of encoders.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "net/protocol/answer_piece.h"

namespace weir::tests {

// A piece of an answer that is one text. `first`: its block begins.
class text_piece {
 public:
  explicit text_piece(std::string_view text, bool first = false) {
    part_.text = text;
    part_.begins = first;
    piece_.parts = std::span(&part_, 1);
  }
  text_piece(const text_piece&) = delete;
  operator const net::answer_piece&() const { return piece_; }

 private:
  actors::part_piece part_;
  net::answer_piece piece_;
};

// The log of tokens with these ids and texts.
inline actors::token_log log_of_tokens(std::initializer_list<std::pair<core::token_id, const char*>> tokens) {
  actors::token_log log;
  for (const auto& [id, text] : tokens) {
    log.text() += text;
    log.append(id, 0, true);
  }
  return log;
}

}  // namespace weir::tests
