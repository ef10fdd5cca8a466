// Names that the build of the tests relies on.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/support/source_dir.h"

namespace weir::tests::test_names_test {
namespace {

namespace fs = std::filesystem;

// Calls f(path, text) for each file of tests.
template <class F>
void for_each_file(const F& f) {
  for (const char* room : {"house", "kernels", "core", "actors", "net"})
    for (const auto& entry : fs::recursive_directory_iterator(source_dir() / "tests" / room)) {
      if (entry.path().extension() != ".cpp") continue;
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      f(entry.path(), text.str());
    }
}

}  // namespace

// CMake splits lists at semicolons: such a test would be registered as two names that match nothing. A name
// that begins with a hyphen is an option to Catch.
TEST_CASE("each test case has a name that CMake and Catch take as one") {
  const std::regex name(R"re(TEST_CASE\(\s*"([^"]*)")re");
  std::size_t seen = 0;
  for_each_file([&](const fs::path& file, const std::string& s) {
    for (std::sregex_iterator it(s.begin(), s.end(), name), end; it != end; ++it, ++seen) {
      INFO(file << ": " << (*it)[1]);
      CHECK((*it)[1].str().find(';') == std::string::npos);
      CHECK((*it)[1].str().find('-') != 0);
    }
  });
  CHECK(seen > 100);
}

// Eight files are compiled as one, and two of them may have helpers of one name.
TEST_CASE("each file of tests has a namespace of its own") {
  std::size_t seen = 0;
  for_each_file([&](const fs::path& file, const std::string& s) {
    if (!std::regex_search(s, std::regex("(^|\n)TEST_CASE"))) return;
    ++seen;
    INFO(file);
    CHECK(s.find("\nnamespace weir::tests::" + file.stem().string() + " {\n") != s.npos);
  });
  CHECK(seen > 100);
}

}  // namespace weir::tests::test_names_test
