// g++ 12 destroys twice an aggregate temporary with a non-trivial member inside a co_await expression (GCC 107288,
// fixed in 13); the same goes for ?: of aggregates and for capturing lambdas passed as arguments. This looks for the
// spellings.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace {

namespace fs = std::filesystem;

// The co_await expressions of a source text: from the keyword to the semicolon or the closing brace of its statement.
std::vector<std::string> awaited(const std::string& text) {
  std::vector<std::string> found;
  for (std::size_t at = text.find("co_await"); at != text.npos; at = text.find("co_await", at + 8)) {
    int depth = 0;
    std::size_t end = at;
    for (; end < text.size(); ++end) {
      const char c = text[end];
      if (c == '(' || c == '{' || c == '[') ++depth;
      if (c == ')' || c == '}' || c == ']') --depth;
      if (depth < 0 || (depth == 0 && c == ';')) break;
    }
    found.push_back(text.substr(at, end - at));
  }
  return found;
}

bool dangerous(const std::string& expression) {
  static const std::regex designated(R"(\{\s*\.[a-z_])");          // f(msg{.a = …}), f({.a = …})
  static const std::regex braced(R"([\(,]\s*\{\s*[^}\s])");        // f({a, b})
  static const std::regex capturing(R"([\(,]\s*\[[^\]]+\]\s*[\(\{])");  // f([x] { … })
  static const std::regex ternary(R"(\?[^;:]*\{[^;]*:)");          // c ? a{…} : b{…}
  return std::regex_search(expression, designated) || std::regex_search(expression, braced) ||
         std::regex_search(expression, capturing) || std::regex_search(expression, ternary);
}

std::string without_comments(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(//[^\n]*)"), "");
}

}  // namespace

TEST_CASE("no co_await expression holds what g++ 12 destroys twice") {
  std::vector<std::string> wrong;
  std::size_t seen = 0;
  for (const char* room : {"actors", "net", "apps", "tests", "docs"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(WEIR_SOURCE_DIR) / room)) {
      const auto ext = entry.path().extension();
      if (ext != ".h" && ext != ".cpp" && ext != ".hpp") continue;
      if (entry.path().filename() == "co_await_test.cpp") continue;
      std::ifstream in(entry.path());
      std::stringstream text;
      text << in.rdbuf();
      for (const auto& e : awaited(without_comments(text.str()))) {
        ++seen;
        if (dangerous(e)) wrong.push_back(entry.path().string() + ": " + e);
      }
    }
  }
  for (const auto& w : wrong) UNSCOPED_INFO(w);
  CHECK(wrong.empty());
  CHECK(seen > 10);
}

TEST_CASE("the spellings that g++ 12 gets wrong are noticed") {
  CHECK(dangerous("co_await f(msg{.a = 1})"));
  CHECK(dangerous("co_await f({1, 2})"));
  CHECK(dangerous("co_await f([x] { return x; })"));
  CHECK(dangerous("co_await f([&](int a) { return a; })"));
  CHECK(dangerous("co_await (c ? a{1} : a{2})"));
  CHECK_FALSE(dangerous("co_await self.async_receive()"));
  CHECK_FALSE(dangerous("co_await a.ask<get>(use_awaitable, 1)"));
  CHECK_FALSE(dangerous("co_await f(v[1], [] { return 1; })"));
}
