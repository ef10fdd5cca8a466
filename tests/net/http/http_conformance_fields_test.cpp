// RFC 9112, section 5: header fields. What one reader takes for a field and another does not is refused.
#include "tests/support/http_table.h"
#include "tests/support/plain_server.h"

namespace weir::tests::http_conformance_fields_test {
namespace {

using namespace std::string_literals;

const statuses fine{200}, refused{400}, too_long{400, 431};

struct field_row {
  const char* name;
  std::string lines;
  statuses goes_on, ends;
};

std::string many(std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += fmt::format("X-{}: y\r\n", i);
  return out;
}

std::string folds(std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += " y\r\n";
  return out;
}

const field_row fields[] = {
    {"a field", "X: y\r\n", fine, {}},
    {"every character of a name", "!#$%&'*+-.^_`|~09azAZ: y\r\n", fine, {}},
    {"no space before the value", "X:y\r\n", fine, {}},
    {"tabs around the value", "X:\ty\t\r\n", fine, {}},
    {"a tab in the value", "X: y\tz\r\n", fine, {}},
    {"no value", "X:\r\n", fine, {}},
    {"colons in the value", "X: y: z\r\n", fine, {}},
    {"one name many times", "X: a\r\nX: b\r\nx: c\r\n", fine, {}},
    {"a value over 127", "X: \xC3\xA9\xff\r\n", fine, refused},
    {"no colon", "X\r\n", {}, refused},
    {"no colon, a value", "X y\r\n", {}, refused},
    {"no name", ": y\r\n", {}, refused},
    {"space before the colon", "X : y\r\n", {}, refused},
    {"a tab before the colon", "X\t: y\r\n", {}, refused},
    {"space in the name", "X Z: y\r\n", {}, refused},
    {"space before the name", " X: y\r\n", {}, refused},
    {"a tab before the name", "\tX: y\r\n", {}, refused},
    {"a folded line", "X: y\r\n z\r\n", fine, refused},
    {"a line folded with a tab", "X: y\r\n\tz\r\n", fine, refused},
    {"a line folded into nothing", "X: y\r\n \r\n", fine, refused},
    {"a parenthesis in the name", "X(: y\r\n", {}, refused},
    {"a quote in the name", "\"X\": y\r\n", {}, refused},
    {"a byte over 127 in the name", "X\xff: y\r\n", {}, refused},
    {"NUL in the name", "X\0: y\r\n"s, {}, refused},
    {"NUL in the value", "X: y\0z\r\n"s, {}, refused},
    {"a control in the name", "X\x01: y\r\n", {}, refused},
    {"a control in the value", "X: \x01\r\n", {}, refused},
    {"DEL in the value", "X: \x7f\r\n", {}, refused},
    {"a vertical tab in the value", "X: y\vz\r\n", {}, refused},
    {"a bare CR in the value", "X: y\rz\r\n", {}, refused},
    {"a bare CR at the end of the value", "X: y\r\r\n", {}, refused},
    {"a bare LF in the value", "X: y\nz\r\n", {}, refused},
    {"a field behind a bare LF", "X: y\nZ: z\r\n", {}, refused},
    {"a bare LF as the end of the head", "X: y\r\n\nZ: z\r\n", {}, refused},
    {"a bare CR as the end of the head", "X: y\r\n\rZ: z\r\n", {}, refused},
    {"LF, CR as the end of a line", "X: y\n\rZ: z\r\n", {}, refused},
    {"a name of some length", std::string(1000, 'x') + ": y\r\n", fine, {}},
    {"a value of some length", "X: " + std::string(7000, 'y') + "\r\n", fine, {}},
    {"many", many(400), fine, {}},
    {"a name over the limit", std::string(9000, 'x') + ": y\r\n", {}, too_long},
    {"a value over the limit", "X: " + std::string(9000, 'y') + "\r\n", {}, too_long},
    {"a value far over the limit", "X: " + std::string(1 << 20, 'y') + "\r\n", {}, too_long},
    {"fields over the limit, together", many(1000), {}, too_long},
    {"a folded value over the limit", "X: y\r\n " + std::string(9000, 'y') + "\r\n", {}, too_long},
    {"folds over the limit, together", "X: y\r\n" + folds(3000), {}, too_long},
};

}  // namespace

TEST_CASE("http conformance: header fields are a token, a colon and text, or the request is refused") {
  plain_server server;
  for (const auto& r : fields) check_row({r.name, get(r.lines), r.goes_on, r.ends}, server.port());
}

TEST_CASE("http conformance: a request has one Host, and it is the server's") {
  plain_server server;
  const auto with = [](std::string_view hosts, std::string_view target = "/health/live") {
    return fmt::format("GET {} HTTP/1.1\r\n{}\r\n", target, hosts);
  };
  const http_row rows[] = {
      {"none", with(""), refused, refused},
      {"one", with("Host: localhost\r\n"), fine, {}},
      {"one in other case", with("hOST: LOCALHOST:80\r\n"), fine, {}},
      {"an address", with("Host: 127.0.0.1\r\n"), fine, {}},
      {"two", with("Host: localhost\r\nHost: localhost\r\n"), refused, refused},
      {"two, the other one bad", with("Host: localhost\r\nHost: evil.example\r\n"), refused, refused},
      {"two, apart", with("Host: localhost\r\nX: y\r\nhost: localhost\r\n"), refused, refused},
      {"empty", with("Host:\r\n"), {400, 403}, {400, 403}},
      {"another's", with("Host: evil.example\r\n"), {403}, {403}},
      {"two words", with("Host: localhost evil.example\r\n"), {400, 403}, {400, 403}},
      {"a list", with("Host: localhost, localhost\r\n"), {400, 403}, {400, 403}},
      {"space before the colon", with("Host : localhost\r\n"), {}, refused},
      {"none in HTTP/1.0", "GET /health/live HTTP/1.0\r\n\r\n", {}, {200, 400, 403}},
      {"two in HTTP/1.0",
       "GET /health/live HTTP/1.0\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
       {},
       refused},
      {"also in the target", with("Host: localhost\r\n", "http://localhost/health/live"), fine, {}},
      {"another's in the target",
       with("Host: localhost\r\n", "http://evil.example/health/live"),
       {400, 403, 421},
       {400, 403, 421}},
      {"missing beside one in the target", with("", "http://localhost/health/live"), refused, refused},
  };
  for (const auto& r : rows) check_row(r, server.port());
}

}  // namespace weir::tests::http_conformance_fields_test
