// http_framing.h — decides whether the end of a request's body is unambiguous (RFC 9112, section 6).
//
// If two readers can find the end of a request in two places, a client can hide a second request behind the
// first (request smuggling). Such a request is refused before a byte of its body is read, and its connection
// is closed.
//
// Pure functions: any thread.
#pragma once

#include <optional>
#include <string_view>

#include "net/http/reply.h"

namespace weir::net {

struct framing {
  unsigned version = 11;                             // 10 or 11
  // All Transfer-Encoding lines in order, joined by commas; nullopt: there is none.
  std::optional<std::string_view> transfer_encoding;
  bool content_length = false;                       // there is a Content-Length line
};

// The refusal of a request; nullopt: its framing is clear and supported. Of the transfer codings only
// "chunked", in HTTP/1.1, is supported. Other codings that exist are refused with 501, and unknown or
// contradictory headers with 400.
std::optional<reply> judge_framing(const framing& f);

}  // namespace weir::net
