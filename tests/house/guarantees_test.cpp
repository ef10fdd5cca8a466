// docs/actors.md promises in numbered sentences; each has a test of that name, word for word.
#include <catch2/catch.hpp>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/source_dir.h"

namespace weir::tests::guarantees_test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& p) {
  std::stringstream text;
  text << std::ifstream(p).rdbuf();
  return text.str();
}

// The bold beginnings of numbered lines: "12. **A cancelled receive loses no mail.** It is there for …"
std::vector<std::string> promises(const std::string& page) {
  static const std::regex line(R"(\n\d+\. \*\*([^*]+)\.\*\*)");
  std::vector<std::string> found;
  for (std::sregex_iterator it(page.begin(), page.end(), line), end; it != end; ++it) {
    std::string words = std::regex_replace((*it)[1].str(), std::regex("[`\n]+"), "");
    words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
    found.push_back(words);
  }
  return found;
}

std::set<std::string> test_names(const fs::path& folder) {
  static const std::regex name(R"re(TEST_CASE\(\s*"([^"]*)")re");
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string text = text_of(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it)
      found.insert((*it)[1]);
  }
  return found;
}

}  // namespace

TEST_CASE("every guarantee of docs/actors.md has a test of its name") {
  const auto made = promises(text_of(weir::tests::source_dir() / "docs/actors.md"));
  const auto kept = test_names(weir::tests::source_dir() / "tests/actors/runtime");
  for (const auto& promise : made) {
    INFO(promise);
    CHECK(kept.contains(promise));
  }
  CHECK(made.size() > 40);
}

TEST_CASE("a guarantee is told from the text around it") {
  const std::string page =
      "# A\n\n1. **It holds.** Because.\n2. **`tell` says no.** Then.\nNot **this.** one.\n";
  CHECK(promises(page) == std::vector<std::string>{"it holds", "tell says no"});
}

}  // namespace weir::tests::guarantees_test
