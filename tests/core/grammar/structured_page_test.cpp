// docs/structured.md says what is refused and which formats there are; both are held to the code.
#include <catch2/catch.hpp>
#include <regex>
#include <set>

#include "core/grammar/schema/formats.h"
#include "tests/core/grammar/grammar_kit.h"
#include "tests/support/source_dir.h"

namespace weir::tests::structured_page_test {

using namespace weir::core::grammar;

namespace {

std::string page() {
  return read_file(weir::tests::source_dir() / "docs" / "structured.md");
}

struct row {
  std::string in, what, example;
};

// Rows `| in | what | `example` |`.
std::vector<row> refused_rows(const std::string& text) {
  static const std::regex line("\n\\| ([a-zA-Z ]+) \\| ([^|]+) \\| `(.+)` \\|(?=\n)");
  std::vector<row> out;
  for (std::sregex_iterator it(text.begin(), text.end(), line), end; it != end; ++it)
    out.push_back({(*it)[1], (*it)[2], std::regex_replace((*it)[3].str(), std::regex("\\\\\\|"), "|")});
  return out;
}

std::optional<constraint_text> constraint_of(const row& r) {
  constraint_text c;
  c.text = r.example;
  c.what = constraint_text::kind::grammar;
  if (r.in == "GBNF") c.syntax = "gbnf";
  if (r.in == "Lark") c.syntax = "lark";
  if (r.in == "regex") c.what = constraint_text::kind::regex;
  if (r.in == "schema" || r.in == "strict schema") c.what = constraint_text::kind::json_schema;
  c.strict = r.in == "strict schema";
  const bool known = c.what != constraint_text::kind::grammar || !c.syntax.empty();
  return known ? std::optional(c) : std::nullopt;
}

std::set<std::string> names_in(const std::string& text) {
  static const std::regex name("[a-z0-9-]+");
  return {std::sregex_token_iterator(text.begin(), text.end(), name), std::sregex_token_iterator()};
}

}  // namespace

TEST_CASE("what docs/structured.md says is refused is refused by that name", "[grammar]") {
  const auto rows = refused_rows(page());
  CHECK(rows.size() > 30);
  for (const auto& r : rows) {
    INFO(r.in << ": " << r.example);
    const auto c = constraint_of(r);
    REQUIRE(c);
    const auto out = bound(*c);
    REQUIRE(out.has_error());
    INFO(out.error().message);
    CHECK(out.error().message.find(r.what) != std::string::npos);
  }
}

TEST_CASE("what is refused of a strict schema is a warning otherwise", "[grammar]") {
  for (const auto& r : refused_rows(page())) {
    if (r.in != "strict schema") continue;
    INFO(r.example);
    auto c = *constraint_of(r);
    c.strict = false;
    const auto out = compile(c);
    REQUIRE(out.has_value());
    REQUIRE(out->warnings.size() == 1);
    CHECK(out->warnings[0].message.find(r.what) != std::string::npos);
  }
}

TEST_CASE("docs/structured.md names every format that is known", "[grammar]") {
  static const std::regex line(R"(\| `format` \| `([^`]+)` are asserted\. `([^`]+)` ask nothing)");
  static const std::regex left(R"(formats `([^`]+)`, the opposite)");
  const auto text = page();
  std::smatch known, missing;
  REQUIRE(std::regex_search(text, known, line));
  REQUIRE(std::regex_search(text, missing, left));
  const auto all = [](format_use use) {
    const auto names = formats_of(use);
    return std::set<std::string>(names.begin(), names.end());
  };
  CHECK(names_in(known[1]) == all(format_use::asserted));
  CHECK(names_in(known[2]) == all(format_use::annotation));
  CHECK(names_in(missing[1]) == all(format_use::missing));
}

}  // namespace weir::tests::structured_page_test
