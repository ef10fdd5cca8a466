// The figures that the README names are those of docs/performance.md: whoever measures again changes both.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/source_dir.h"

namespace weir::tests::figures_test {
namespace {

std::string text_of(const char* file) {
  std::ifstream in(source_dir() / file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Numbers with a decimal point or a thousands' comma: what was measured, and not what was chosen.
std::vector<std::string> measured(const std::string& text) {
  static const std::regex number(R"(\d+(,\d{3})+|\d+\.\d+)");
  std::vector<std::string> out;
  for (std::sregex_iterator it(text.begin(), text.end(), number), end; it != end; ++it)
    out.push_back(it->str());
  return out;
}

// The bullets of the README's «Three figures».
std::vector<std::string> bullets(const std::string& readme) {
  const auto from = readme.find("Three figures, with their commands in [docs/performance.md]");
  REQUIRE(from != readme.npos);
  const std::string part = readme.substr(from, readme.find("\n\n", readme.find("\n- ", from)) - from);
  std::vector<std::string> out;
  for (auto at = part.find("\n- "); at != part.npos; at = part.find("\n- ", at + 1))
    out.push_back(part.substr(at, part.find("\n- ", at + 1) - at));
  return out;
}

// Every table of a page, as one text.
std::vector<std::string> tables(const std::string& page) {
  std::vector<std::string> out(1);
  std::size_t at = 0;
  while (at < page.size()) {
    const auto end = std::min(page.find('\n', at), page.size());
    const std::string line = page.substr(at, end - at);
    if (line.starts_with('|')) {
      out.back() += line + "\n";
    } else if (!out.back().empty()) {
      out.emplace_back();
    }
    at = end + 1;
  }
  return out;
}

bool has_all(const std::string& table, const std::vector<std::string>& figures) {
  const auto there = measured(table);
  return std::ranges::all_of(
      figures, [&](const std::string& f) { return std::ranges::find(there, f) != there.end(); });
}

}  // namespace

TEST_CASE("the figures of each of the README's three bullets stand in one table of docs/performance.md") {
  const auto three = bullets(text_of("README.md"));
  const auto all = tables(text_of("docs/performance.md"));
  REQUIRE(three.size() == 3);
  for (const std::string& bullet : three) {
    CAPTURE(bullet);
    const auto figures = measured(bullet);
    CHECK(figures.size() >= 2);
    CHECK(std::ranges::any_of(all, [&](const std::string& table) { return has_all(table, figures); }));
  }
}

}  // namespace weir::tests::figures_test
