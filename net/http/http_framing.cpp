#include "net/http/http_framing.h"

#include <algorithm>
#include <array>
#include <string>

namespace weir::net {
namespace {

constexpr std::array<std::string_view, 5> known_codings = {"gzip", "x-gzip", "deflate", "compress",
                                                           "x-compress"};

reply bad_request(std::string_view why) {
  reply no = error_reply(400, "bad_request", why);
  no.close = true;
  return no;
}

// Removes the first coding from a comma-separated list and returns it in lower case.
std::string take_coding(std::string_view& list) {
  const auto comma = list.find(',');
  std::string_view item = list.substr(0, comma);
  list = comma == list.npos ? std::string_view() : list.substr(comma + 1);
  while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
  while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
  std::string coding(item);
  std::ranges::transform(coding, coding.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
  return coding;
}

}  // namespace

std::optional<reply> judge_framing(const framing& f) {
  if (!f.transfer_encoding) return std::nullopt;
  if (f.version < 11) return bad_request("Transfer-Encoding is not a part of HTTP/1.0");
  if (f.content_length) return bad_request("Transfer-Encoding and Content-Length exclude each other");
  std::string_view list = *f.transfer_encoding;
  bool others = false;
  while (true) {
    const std::string coding = take_coding(list);
    if (coding == "chunked") break;
    if (std::ranges::find(known_codings, coding) == known_codings.end())
      return bad_request("Transfer-Encoding names a coding that does not exist");
    if (list.empty()) return bad_request("Transfer-Encoding has to end with chunked");
    others = true;
  }
  if (!list.empty()) return bad_request("Transfer-Encoding has to end with chunked");
  if (!others) return std::nullopt;
  reply no = error_reply(501, "not_implemented", "of the transfer codings only chunked is supported");
  no.close = true;
  return no;
}

}  // namespace weir::net
