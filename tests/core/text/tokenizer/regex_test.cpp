#include "core/text/tokenizer/regex.h"

#include <catch2/catch.hpp>

namespace weir::tests::regex_test {

using namespace weir::core;

namespace {

std::string replaced(const char* field, std::string_view text, std::string_view by) {
  const auto value = boost::json::parse(field);
  return pattern(json_field(value, "p")).replace(text, by);
}

std::string complaint(const char* field) {
  const auto value = boost::json::parse(field);
  try {
    pattern(json_field(value, "file.pattern"));
  } catch (const refusal& r) {
    return r.why.message;
  }
  return "";
}

}  // namespace

TEST_CASE("a literal is not read as a regular expression") {
  CHECK(replaced(R"({"String":"."})", "a.b.c", "--") == "a--b--c");
  CHECK(replaced(R"({"Regex":"[.]|c"})", "a.b.c", "-") == "a-b--");
  CHECK(replaced(R"({"String":"aa"})", "aaa", "b") == "ba");
}

TEST_CASE("a broken or empty pattern names its field") {
  CHECK(complaint(R"({"Regex":"a(b"})").find("file.pattern.Regex") == 0);
  CHECK(complaint(R"({"Regex":""})").find("file.pattern.Regex: must not be empty") == 0);
  CHECK(complaint(R"({"Regex":"[a&&b]"})").find("file.pattern.Regex: '&&'") == 0);
  CHECK(complaint(R"({"Text":"a"})").find("'Regex' is missing") != std::string::npos);
}

TEST_CASE("a pattern that backtracks without end finds nothing instead of hanging") {
  std::vector<span_of_text> spans;
  regex("(?:a+)+b").find(std::string(40, 'a'), spans);
  CHECK(spans.empty());
}

TEST_CASE("a long run is matched whole") {
  const std::string run(1 << 20, 'a');
  std::vector<span_of_text> spans;
  regex(R"((?:\p{L}\p{M}*)+)").find(run, spans);
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].end == run.size());
}

}  // namespace weir::tests::regex_test
