// Two faults of g++ 12 with coroutines; the test looks for code that has them.
//
//   - It destroys an aggregate temporary with a non-trivial member twice inside a co_await expression (GCC
//     107288, fixed in 13). The same goes for ?: of aggregates and for capturing lambdas as arguments.
//   - A coroutine that awaits in the condition of an if, while or for crashes when it ends, if no block
//     around the condition declares a variable. A condition that declares its own, or a try around it, is
//     safe.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/support/source_dir.h"

namespace weir::tests::co_await_test {
namespace {

namespace fs = std::filesystem;

// The co_await expressions of a source text: from the keyword to the semicolon or the closing brace of its
// statement.
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

// The place of the closing counterpart of the bracket at `open`.
std::size_t closing(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '(' || c == '{' || c == '[') ++depth;
    if ((c == ')' || c == '}' || c == ']') && --depth == 0) return at;
  }
  return text.size();
}

// The opening brace of the innermost block around `at`, or npos.
std::size_t block_around(const std::string& text, std::size_t at) {
  int depth = 0;
  while (at-- > 0) {
    if (text[at] == '}') ++depth;
    if (text[at] == '{' && depth-- == 0) return at;
  }
  return text.npos;
}

// Whether a block declares a variable itself, not in a block inside it.
bool declares(const std::string& text, std::size_t open) {
  static const std::regex statement(
      R"(^\s*(const\s+|static\s+)*(?!return|co_return|co_await|throw|using|else|case|goto|delete)[A-Za-z_][\w:]*(<.*>)?(\s*[&*]+\s*|\s+)[A-Za-z_\[]\w*[^;]*$)");
  std::string one;
  for (std::size_t at = open + 1; at < closing(text, open); ++at) {
    if (text[at] == '(' || text[at] == '{') {
      const bool body = text[at] == '{';
      at = closing(text, at);
      if (!body) one += "()";
      const bool ends =
          body && text.find_first_not_of(" \n", at + 1) != text.npos &&
          std::string(";,)=.").find(text[text.find_first_not_of(" \n", at + 1)]) == std::string::npos;
      if (ends) one.clear();
    } else if (text[at] == ';') {
      if (std::regex_search(one, statement)) return true;
      one.clear();
    } else {
      one += text[at] == '\n' ? ' ' : text[at];
    }
  }
  return false;
}

// The conditions with a co_await that the second fault hits.
std::vector<std::string> into_the_void(const std::string& text) {
  static const std::regex head(R"(\b(if|while|for)\s*\()");
  static const std::regex declaration(R"(^\(\s*(const\s+)?(auto|bool|int|std::[\w:<>]+)[\s&*]+[\w\[])");
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), head), end; it != end; ++it) {
    const auto open = static_cast<std::size_t>(it->position() + it->length() - 1);
    const std::string condition = text.substr(open, closing(text, open) + 1 - open);
    if (condition.find("co_await") == condition.npos || condition.find(" : ") != condition.npos) continue;
    if (std::regex_search(condition, declaration)) continue;
    bool safe = false;
    for (auto b = block_around(text, open); b != text.npos && !safe; b = block_around(text, b)) {
      const std::string before = text.substr(b > 200 ? b - 200 : 0, b > 200 ? 200 : b);
      safe = declares(text, b) || std::regex_search(before, std::regex(R"(\btry\s*$)"));
      if (std::regex_search(before, std::regex(R"(awaitable<[^;{}]*$)"))) break;  // the coroutine's own block
    }
    if (!safe) found.push_back(condition);
  }
  return found;
}

}  // namespace

TEST_CASE("no coroutine is spelled in a way that g++ 12 gets wrong") {
  std::vector<std::string> wrong;
  std::size_t seen = 0;
  for (const char* room : {"actors", "net", "apps", "tests", "docs"}) {
    for (const auto& entry : fs::recursive_directory_iterator(weir::tests::source_dir() / room)) {
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
      for (const auto& c : into_the_void(without_comments(text.str())))
        wrong.push_back(entry.path().string() + ": " + c + " and no variable around it");
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

TEST_CASE("a condition that awaits with no variable around it is noticed") {
  const auto void_in = [](const std::string& body) {
    return !into_the_void("asio::awaitable<void> f(context<int> self) {\n  " + body + "\n}\n").empty();
  };
  CHECK(void_in("while (co_await more()) use();"));
  CHECK(void_in("if (co_await more()) use();"));
  CHECK(void_in("for (;;) {\n    if (!co_await more()) co_return;\n    use();\n  }"));
  CHECK(void_in("while (ready && co_await more()) {\n    int inside = 1;\n  }"));
  CHECK_FALSE(void_in("int n = 0;\n  while (co_await more()) ++n;"));
  CHECK_FALSE(void_in("std::vector<int> all;\n  while (co_await more()) all.push_back(1);"));
  CHECK_FALSE(void_in("while (auto m = co_await more()) use(*m);"));
  CHECK_FALSE(void_in("try {\n    while (co_await more()) use();\n  } catch (int) {\n  }"));
  CHECK_FALSE(void_in("for (;;) {\n    const bool on = co_await more();\n    if (!on) co_return;\n  }"));
  CHECK_FALSE(void_in("while (busy()) co_await pause();"));
}

}  // namespace weir::tests::co_await_test
