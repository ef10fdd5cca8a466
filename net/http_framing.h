// http_framing.h — whether a request says clearly where its body ends (RFC 9112, section 6).
//
// A request whose end two readers could see in two places lets a stranger smuggle a second request behind the
// first. Such a request is refused before a byte of its body is read, and its connection is closed.
//
// Pure functions: any thread.
#pragma once

#include <optional>
#include <string_view>

#include "net/reply.h"

namespace weir::net {

struct framing {
  unsigned version = 11;                             // 10 or 11
  std::optional<std::string_view>
      transfer_encoding;  // all such lines in order, joined by commas; none: there was none
  bool content_length = false;                       // at least one such line
};

// The refusal, where there is one: 400 for what no coding is or what contradicts itself, 501 for codings that
// are not supported. "chunked" alone, in HTTP/1.1, is supported.
std::optional<reply> judge_framing(const framing& f);

}  // namespace weir::net
