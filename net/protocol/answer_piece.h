// answer_piece.h — what is new in an answer, as the encoders of all dialects get it.
//
// Thread safety: plain data; it refers to a job's log.
#pragma once

#include <span>
#include <string>

#include "actors/token_log.h"
#include "core/text/answer/marks.h"

namespace weir::net {

struct answer_piece {
  std::span<const actors::part_piece> parts;  // in their order; empty: nothing that is shown
  std::span<const core::answer_call> calls;   // of the whole log, which the parts refer to
  std::span<const std::string> warnings;      // of what could not be read; with the last piece

  bool has_text() const {
    for (const auto& p : parts)
      if (!p.text.empty()) return true;
    return false;
  }
};

}  // namespace weir::net
