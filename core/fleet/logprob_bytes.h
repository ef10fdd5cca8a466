// logprob_bytes.h — how frames spell the logprobs of a token, without the token's own id.
//
// Thread safety: pure functions.
#pragma once

#include <span>

#include "core/fleet/bytes.h"
#include "core/sample/logprobs.h"

namespace weir::core::fleet {

inline void write_logprobs(byte_writer& to, float own, std::span<const token_logprob> likeliest) {
  to(own);
  to(static_cast<std::uint8_t>(likeliest.size()));
  for (const auto& l : likeliest) {
    to.varint(static_cast<std::uint64_t>(l.id));
    to(l.logprob);
  }
}

// Sets all of `l` but the id of its own token.
inline void read_logprobs(byte_reader& from, draw_logprobs& l) {
  from(l.drawn.logprob);
  l.count = from.byte();
  if (l.count > most_top_logprobs) return from.fail();
  for (std::uint32_t i = 0; i < l.count; ++i) {
    l.likeliest[i].id = from.token();
    from(l.likeliest[i].logprob);
  }
}

}  // namespace weir::core::fleet
