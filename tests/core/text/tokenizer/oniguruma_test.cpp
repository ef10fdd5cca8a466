#include <catch2/catch.hpp>

#include "core/text/tokenizer/regex.h"

namespace weir::tests::oniguruma_test {

using namespace weir::core;

namespace {

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  std::vector<span_of_text> spans;
  regex(pattern).find(text, spans);
  std::vector<std::string> out;
  for (const auto& s : spans) out.emplace_back(s.of(text));
  return out;
}

std::string refused(std::string_view pattern) {
  try {
    to_pcre2(pattern);
  } catch (const refusal& r) {
    return r.why.message;
  }
  return "";
}

using list = std::vector<std::string>;

}  // namespace

TEST_CASE("white space in a pattern is Unicode's White_Space") {
  CHECK(matches(R"(\s)", "\u0085\u00A0\u180E\u3000") == list{"\u0085", "\u00A0", "\u3000"});
  CHECK(matches(R"([\s]+)", "a \u2028 b") == list{" \u2028 "});
  CHECK(matches(R"(\S+)", "a\u180Eb c") == list{"a\u180Eb", "c"});
}

TEST_CASE("a word character in a pattern may be a mark or a connector, and no symbol") {
  CHECK(matches(R"(\w+)", "e\u0301_1\u203F a½") == list{"e\u0301_1\u203F", "a"});
  CHECK(matches(R"([\w-]+)", "a-b c") == list{"a-b", "c"});
  CHECK(matches(R"(\W+)", "a, b") == list{", "});
}

TEST_CASE("backslash h is a hexadecimal digit") {
  CHECK(matches(R"(\h+)", "x1fG") == list{"1f"});
  CHECK(matches(R"([\h_]+)", "x1f_G") == list{"1f_"});
}

TEST_CASE("a set inside a set is their union") {
  CHECK(matches(R"([^(\s|[.,!?…。])]+)", "ab(c|d.e…f g") == list{"ab", "c", "d", "e", "f", "g"});
  CHECK(matches(R"([]a]+)", "]a[") == list{"]a"});
}

TEST_CASE("anchors hold at every line") { CHECK(matches("^a$", "a\nb\na") == list{"a", "a"}); }

TEST_CASE("empty matches step over characters, not bytes") {
  std::vector<span_of_text> spans;
  regex("(?=é)|z*").find("éz", spans);
  std::size_t last = 0;
  for (const auto& s : spans) {
    CHECK(s.begin != 1);
    CHECK(s.begin >= last);
    last = s.end;
  }
  CHECK(last == 3);
}

TEST_CASE("what the two languages read differently is refused by name") {
  CHECK(refused("[a-z&&[^aeiou]]").find("'&&'") != std::string::npos);
  CHECK(refused("[a[^b]]").find("negated set") != std::string::npos);
  CHECK(refused(R"([\W])").find("negated class") != std::string::npos);
  CHECK(refused("(?m:a.)").find("(?m)") != std::string::npos);
  CHECK(refused(R"(\p{N}{1,3}+)").find("{n,m}+") != std::string::npos);
  CHECK(refused("[a").find("']'") != std::string::npos);
  CHECK(refused("a\\").find("lone") != std::string::npos);
  CHECK(refused(R"((?i:'s)|\p{L}++|\p{N}{1,3}|\s+(?!\S))").empty());
}

}  // namespace weir::tests::oniguruma_test
