// http_table.h — rows of bytes and what a server may answer to them. One more request follows the bytes; its
// answer shows whether the connection goes on. After a refusal of the framing nobody knows where the next
// request begins: bytes that the server then runs as a request are a smuggled request.
#pragma once

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/raw_client.h"

namespace weir::tests {

// ---- what a server said

struct raw_answer {
  unsigned status = 0;
  std::string head, body;
};

inline std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// Value of a header, by its name in lower case.
inline std::optional<std::string> field_of(const raw_answer& a, std::string_view name) {
  const auto at = lower(a.head).find(fmt::format("\r\n{}: ", name));
  if (at == std::string::npos) return std::nullopt;
  const auto from = at + name.size() + 4;
  return a.head.substr(from, a.head.find("\r\n", from) - from);
}

// The answers in `bytes`, in order. Bytes that are no whole answer fail the test.
inline std::vector<raw_answer> answers_in(std::string_view bytes, bool first_has_no_body) {
  std::vector<raw_answer> out;
  while (!bytes.empty()) {
    const auto end = bytes.find("\r\n\r\n");
    INFO("bytes that are no answer: " << bytes);
    REQUIRE(bytes.starts_with("HTTP/1."));
    REQUIRE(end != bytes.npos);
    raw_answer a;
    a.head = bytes.substr(0, end + 2);
    a.status = static_cast<unsigned>(std::stoul(a.head.substr(9, 3)));
    bytes.remove_prefix(end + 4);
    const auto length = field_of(a, "content-length");
    if (length && !(first_has_no_body && out.empty())) {
      const auto n = std::stoul(*length);
      REQUIRE(bytes.size() >= n);
      a.body = bytes.substr(0, n);
      bytes.remove_prefix(n);
    }
    out.push_back(std::move(a));
  }
  return out;
}

// ---- rows

using statuses = std::vector<unsigned>;
inline constexpr unsigned nothing = 0;  // the connection ends without an answer

struct http_row {
  std::string name, bytes;
  statuses goes_on;  // with one of these, the request that follows is answered
  statuses ends;     // with one of these, the connection ends without an answer to that request
};

inline constexpr std::string_view request_behind =
    "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
inline constexpr std::string_view hi = R"({"text":"hi"})";  // 13 bytes
inline constexpr std::string_view tokens_of_hi = R"("ids":[104,105])";

// A POST that is answered 200 if its body came through as `hi`, byte by byte.
inline std::string post(std::string_view headers, std::string_view body) {
  return fmt::format(
      "POST /v1/tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{}\r\n{}", headers,
      body);
}
inline std::string get(std::string_view headers) {
  return fmt::format("GET /health/live HTTP/1.1\r\n{}Host: localhost\r\n\r\n", headers);
}

inline std::string describe(unsigned status, bool goes_on) {
  if (status == nothing) return "no answer";
  return fmt::format("{}, and the connection {}", status, goes_on ? "goes on" : "ends");
}

// How the server answers the row's bytes, sent in pieces of `piece` bytes.
inline std::string outcome_of(const http_row& row, unsigned short port, std::size_t piece) {
  raw_client c(port);
  c.send_in_pieces(row.bytes, piece);
  c.send(request_behind);
  c.finish();
  auto answers = answers_in(c.read_to_end(), row.bytes.starts_with("HEAD"));
  std::erase_if(answers, [](const raw_answer& a) { return a.status == 100; });
  for (const auto& a : answers) CHECK(field_of(a, "x-request-id").value_or("").size() == 32);
  if (answers.empty()) return describe(nothing, false);
  const bool read_as_hi = answers[0].body.find(tokens_of_hi) != std::string::npos;
  if (answers[0].status == 200 && row.bytes.starts_with("POST") && !read_as_hi)
    return "another body was read";
  if (answers.size() == 1) return describe(answers[0].status, false);
  const bool behind =
      answers[1].status == 200 && answers[1].body.find(R"("object":"list")") != std::string::npos;
  if (answers.size() > 2 || !behind)
    return fmt::format("{} answers, of which {} is the second", answers.size(), answers[1].status);
  return describe(answers[0].status, true);
}

// Sends the row whole, then byte by byte if it is short, else in two pieces: reads may end anywhere.
inline void check_row(const http_row& row, unsigned short port) {
  constexpr std::size_t is_short = 1024;
  std::string allowed;
  for (const unsigned s : row.goes_on) allowed += "[" + describe(s, true) + "] ";
  for (const unsigned s : row.ends) allowed += "[" + describe(s, false) + "] ";
  for (const std::size_t piece :
       {row.bytes.size(), row.bytes.size() < is_short ? 1 : row.bytes.size() / 2 + 1}) {
    const auto outcome = outcome_of(row, port, piece);
    INFO("row: " << row.name << ", in pieces of " << piece);
    CHECK_THAT(allowed, Catch::Contains("[" + outcome + "]"));
  }
}

}  // namespace weir::tests
