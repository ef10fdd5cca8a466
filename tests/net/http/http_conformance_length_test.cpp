// RFC 9112, section 6: where the body of a request ends. Whatever two readers could understand in two ways is
// refused, and the connection with it (section 11.2).
#include "tests/support/http_table.h"
#include "tests/support/plain_server.h"

namespace weir::tests::http_conformance_length_test {
namespace {

constexpr std::string_view chunked_hi = "d\r\n{\"text\":\"hi\"}\r\n0\r\n\r\n";

// ---- Content-Length

struct length_row {
  const char* name;
  std::string headers;
  statuses goes_on, ends;
};

// All with a body of 13 bytes behind.
const length_row lengths[] = {
    {"a length", "Content-Length: 13\r\n", {200}, {}},
    {"a name in other case", "cONTENT-lENGTH: 13\r\n", {200}, {}},
    {"no space before the value", "Content-Length:13\r\n", {200}, {}},
    {"space around the value", "Content-Length: \t 13 \t\r\n", {200}, {}},
    {"leading zeros", "Content-Length: 0013\r\n", {200}, {400}},
    {"a sign: minus", "Content-Length: -13\r\n", {}, {400}},
    {"a sign: plus", "Content-Length: +13\r\n", {}, {400}},
    {"minus one", "Content-Length: -1\r\n", {}, {400}},
    {"hexadecimal", "Content-Length: 0xd\r\n", {}, {400}},
    {"a fraction", "Content-Length: 13.0\r\n", {}, {400}},
    {"an exponent", "Content-Length: 13e0\r\n", {}, {400}},
    {"two numbers", "Content-Length: 1 3\r\n", {}, {400}},
    {"a unit", "Content-Length: 13b\r\n", {}, {400}},
    {"a parameter", "Content-Length: 13;\r\n", {}, {400}},
    {"quoted", "Content-Length: \"13\"\r\n", {}, {400}},
    {"no number", "Content-Length: many\r\n", {}, {400}},
    {"empty", "Content-Length:\r\n", {}, {400}},
    {"a comma alone", "Content-Length: ,\r\n", {}, {400}},
    {"a vertical tab before it", "Content-Length: \v13\r\n", {}, {400}},
    {"a byte over 127", "Content-Length: 13\xA0\r\n", {}, {400}},
    {"NUL behind it", std::string("Content-Length: 13\0\r\n", 21), {}, {400}},
    {"a list of equals", "Content-Length: 13, 13\r\n", {200}, {400}},
    {"a list that ends in a comma", "Content-Length: 13,\r\n", {200}, {400}},
    {"a list of different ones", "Content-Length: 13, 14\r\n", {}, {400}},
    {"a list of different ones, the smaller last", "Content-Length: 14, 13\r\n", {}, {400}},
    {"twice, equal", "Content-Length: 13\r\nContent-Length: 13\r\n", {200}, {400}},
    {"twice, different", "Content-Length: 13\r\nContent-Length: 14\r\n", {}, {400}},
    {"twice, one empty", "Content-Length: 13\r\nContent-Length:\r\n", {}, {400}},
    {"twice, apart and in other case", "Content-Length: 13\r\nX: y\r\ncontent-length: 0\r\n", {}, {400}},
    {"over the limit", "Content-Length: 2097153\r\n", {}, {413}},
    {"2^32 + 13", "Content-Length: 4294967309\r\n", {}, {413}},
    {"2^63", "Content-Length: 9223372036854775808\r\n", {}, {400, 413}},
    {"2^64 - 1", "Content-Length: 18446744073709551615\r\n", {}, {400, 413}},
    {"2^64 + 13, which is 13 in 64 bits", "Content-Length: 18446744073709551629\r\n", {}, {400, 413}},
    {"fifty digits", "Content-Length: " + std::string(50, '9') + "\r\n", {}, {400, 413}},
    {"more than what comes", "Content-Length: 1000000\r\n", {}, {nothing, 400, 408}},
    {"a name that is nearly it", "Content_Length: 5\r\nContent-Length: 13\r\n", {200}, {400}},
    {"space before the colon", "Content-Length : 13\r\n", {}, {400}},
    {"space before the colon of another", "Content-Length : 0\r\nContent-Length: 13\r\n", {}, {400}},
    {"on a folded line", "Content-Length:\r\n 13\r\n", {200}, {400}},
    {"cut by a fold", "Content-Length: 1\r\n 3\r\n", {}, {400}},
};

// ---- Transfer-Encoding

// All with `hi` behind as one chunk.
const length_row encodings[] = {
    {"chunked", "Transfer-Encoding: chunked\r\n", {200}, {}},
    {"chunked in other case", "transfer-encoding: Chunked\r\n", {200}, {}},
    {"chunked in capitals", "TRANSFER-ENCODING: CHUNKED\r\n", {200}, {}},
    {"space around it", "Transfer-Encoding: \t chunked \t\r\n", {200}, {}},
    {"no space before it", "Transfer-Encoding:chunked\r\n", {200}, {}},
    {"chunked, identity", "Transfer-Encoding: chunked, identity\r\n", {}, {400, 501}},
    {"identity, chunked", "Transfer-Encoding: identity, chunked\r\n", {}, {400, 501}},
    {"identity", "Transfer-Encoding: identity\r\n", {}, {400, 501}},
    {"xchunked", "Transfer-Encoding: xchunked\r\n", {}, {400, 501}},
    {"chunkedx", "Transfer-Encoding: chunkedx\r\n", {}, {400, 501}},
    {"chunked x", "Transfer-Encoding: chunked x\r\n", {}, {400, 501}},
    {"x chunked", "Transfer-Encoding: x chunked\r\n", {}, {400, 501}},
    {"chunked with a parameter", "Transfer-Encoding: chunked;q=1\r\n", {}, {400, 501}},
    {"quoted", "Transfer-Encoding: \"chunked\"\r\n", {}, {400, 501}},
    {"gzip", "Transfer-Encoding: gzip\r\n", {}, {400, 501}},
    {"gzip, chunked", "Transfer-Encoding: gzip, chunked\r\n", {}, {400, 501}},
    {"chunked, gzip", "Transfer-Encoding: chunked, gzip\r\n", {}, {400, 501}},
    {"chunked, chunked", "Transfer-Encoding: chunked, chunked\r\n", {}, {400, 501}},
    {"chunked, a comma behind", "Transfer-Encoding: chunked,\r\n", {200}, {400, 501}},
    {"chunked, a comma before", "Transfer-Encoding: ,chunked\r\n", {200}, {400, 501}},
    {"empty", "Transfer-Encoding:\r\n", {}, {400, 501}},
    {"a comma alone", "Transfer-Encoding: ,\r\n", {}, {400, 501}},
    {"twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", {}, {400, 501}},
    {"twice, identity last", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", {}, {400, 501}},
    {"twice, identity first",
     "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
     {},
     {400, 501}},
    {"twice, gzip first", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", {}, {400, 501}},
    {"twice, empty first", "Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n", {200}, {400, 501}},
    {"a vertical tab before it", "Transfer-Encoding: \vchunked\r\n", {}, {400, 501}},
    {"a byte over 127 behind it", "Transfer-Encoding: chunked\xA0\r\n", {}, {400, 501}},
    {"NUL behind it", std::string("Transfer-Encoding: chunked\0\r\n", 29), {}, {400, 501}},
    {"on a folded line", "Transfer-Encoding:\r\n chunked\r\n", {200}, {400, 501}},
    {"cut by a fold", "Transfer-Encoding: chun\r\n ked\r\n", {}, {400, 501}},
    {"space before the colon", "Transfer-Encoding : chunked\r\n", {}, {400}},
    {"a tab before the colon", "Transfer-Encoding\t: chunked\r\n", {}, {400}},
    {"behind a bare LF", "X: y\nTransfer-Encoding: chunked\r\n", {}, {400}},
    {"behind a bare CR", "X: y\rTransfer-Encoding: chunked\r\n", {}, {400}},
};

// Both framings: a reader that believes the other one sees another request. RFC 9112 6.3 lets a server go on
// with chunked; this one does not.
const length_row both[] = {
    {"length, then chunked", "Content-Length: 23\r\nTransfer-Encoding: chunked\r\n", {}, {400}},
    {"chunked, then length", "Transfer-Encoding: chunked\r\nContent-Length: 23\r\n", {}, {400}},
    {"length zero, then chunked", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", {}, {400}},
    {"chunked, then length zero", "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", {}, {400}},
    {"length, then identity", "Content-Length: 23\r\nTransfer-Encoding: identity\r\n", {}, {400, 501}},
    {"identity, then length", "Transfer-Encoding: identity\r\nContent-Length: 23\r\n", {}, {400, 501}},
    {"length, then xchunked", "Content-Length: 23\r\nTransfer-Encoding: xchunked\r\n", {}, {400, 501}},
    {"xchunked, then length", "Transfer-Encoding: xchunked\r\nContent-Length: 23\r\n", {}, {400, 501}},
    {"length, then gzip", "Content-Length: 23\r\nTransfer-Encoding: gzip\r\n", {}, {400, 501}},
    {"length, then chunked, identity",
     "Content-Length: 23\r\nTransfer-Encoding: chunked, identity\r\n",
     {},
     {400, 501}},
    {"length, then nothing", "Content-Length: 23\r\nTransfer-Encoding:\r\n", {}, {400, 501}},
    {"length, then chunked on a folded line",
     "Content-Length: 23\r\nTransfer-Encoding:\r\n chunked\r\n",
     {},
     {400, 501}},
};

template <std::size_t N>
void check_all(const length_row (&rows)[N], std::string_view body) {
  plain_server server;
  for (const auto& r : rows) check_row({r.name, post(r.headers, body), r.goes_on, r.ends}, server.port());
}

std::string http_1_0(std::string_view headers, std::string_view body) {
  return fmt::format(
      "POST /v1/tokenize HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n{}\r\n{}", headers,
      body);
}

}  // namespace

TEST_CASE("http conformance: Content-Length is one number, or the request is refused") {
  check_all(lengths, hi);
}

TEST_CASE("http conformance: Transfer-Encoding is chunked alone, or the request is refused") {
  check_all(encodings, chunked_hi);
}

TEST_CASE("http conformance: two framings in one request are refused") { check_all(both, chunked_hi); }

TEST_CASE("http conformance: bodies where none is usual, and none where one is") {
  plain_server server;
  const std::string get_chunked = get("Transfer-Encoding: chunked\r\n") + std::string(chunked_hi);
  const std::string get_both =
      get("Content-Length: 23\r\nTransfer-Encoding: identity\r\n") + std::string(chunked_hi);
  const std::string keep = "Connection: keep-alive\r\n";
  const http_row rows[] = {
      {"POST without length", post("", ""), {400, 411}, {400, 411}},
      {"POST of length zero", post("Content-Length: 0\r\n", ""), {400}, {}},
      {"POST without chunks", post("Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), {400}, {}},
      {"GET with a length", get("Content-Length: 13\r\n") + std::string(hi), {200}, {400}},
      {"GET with length zero", get("Content-Length: 0\r\n"), {200}, {}},
      {"GET with chunks", get_chunked, {200}, {400}},
      {"GET with two framings", get_both, {}, {400, 501}},
      {"GET whose body looks like a request",
       get("Content-Length: 18\r\n") + "GET / HTTP/1.1\r\n\r\n",
       {200},
       {400}},
      {"HTTP/1.0 with a length", http_1_0("Content-Length: 13\r\n", hi), {}, {200}},
      {"HTTP/1.0 with a length, kept", http_1_0("Content-Length: 13\r\n" + keep, hi), {200}, {}},
      {"HTTP/1.0 chunked", http_1_0("Transfer-Encoding: chunked\r\n", chunked_hi), {}, {400, 501}},
      {"HTTP/1.0 chunked, kept",
       http_1_0("Transfer-Encoding: chunked\r\n" + keep, chunked_hi),
       {},
       {400, 501}},
      {"HTTP/1.0 xchunked, kept",
       http_1_0("Transfer-Encoding: xchunked\r\n" + keep, chunked_hi),
       {},
       {400, 501}},
  };
  for (const auto& r : rows) check_row(r, server.port());
}

}  // namespace weir::tests::http_conformance_length_test
