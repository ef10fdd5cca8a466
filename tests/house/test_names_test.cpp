// CMake splits lists at semicolons: a test whose name has one would be registered as two names that match
// nothing.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/support/source_dir.h"

namespace weir::tests::test_names_test {

TEST_CASE("no test case has a semicolon in its name") {
  namespace fs = std::filesystem;
  const std::regex name(R"re(TEST_CASE\(\s*"([^"]*)")re");
  std::size_t seen = 0;
  for (const char* room : {"house", "kernels", "core", "actors", "net"})
    for (const auto& entry : fs::recursive_directory_iterator(weir::tests::source_dir() / "tests" / room)) {
      if (entry.path().extension() != ".cpp") continue;
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      const std::string s = text.str();
      for (std::sregex_iterator it(s.begin(), s.end(), name), end; it != end; ++it, ++seen) {
        INFO(entry.path() << ": " << (*it)[1]);
        CHECK((*it)[1].str().find(';') == std::string::npos);
      }
    }
  CHECK(seen > 100);
}

}  // namespace weir::tests::test_names_test
