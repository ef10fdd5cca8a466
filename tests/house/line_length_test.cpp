// Source lines have at most 110 characters, as .clang-format says. A line with text of a raw string literal
// may be longer.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;

std::size_t characters(const std::string& utf8) {
  std::size_t n = 0;
  for (const char c : utf8) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

// The raw string literals of a file. `end` closes the one that the current line is inside of; empty: none.
struct raw_strings {
  std::string end;

  // True if the line has text of a raw string.
  bool read(const std::string& line) {
    bool has_text = !end.empty();
    for (std::size_t at = 0; at != line.npos;) {
      if (end.empty()) {
        at = line.find("R\"", at);
        const auto open = at == line.npos ? at : line.find('(', at);
        if (open == line.npos) return has_text;
        end = ")" + line.substr(at + 2, open - at - 2) + "\"";
        has_text = true;
        at = open;
      } else {
        at = line.find(end, at);
        if (at == line.npos) return has_text;
        at += end.size();
        end.clear();
      }
    }
    return has_text;
  }
};

// Fails for each line that is too long. Returns the number of lines.
std::size_t check_file(const fs::path& path) {
  constexpr std::size_t longest = 110;
  std::ifstream in(path);
  raw_strings raw;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (!raw.read(line) && characters(line) > longest)
      FAIL_CHECK(path.string() << ":" << number << " has " << characters(line) << " characters");
  }
  return number;
}

}  // namespace

TEST_CASE("no source line has more than 110 characters") {
  const std::set<std::string> kinds = {".h", ".hpp", ".cpp", ".cu", ".cuh"};
  std::size_t lines = 0;
  for (const char* room : {"core", "actors", "net", "kernels", "apps", "tests", "docs"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(WEIR_SOURCE_DIR) / room))
      if (kinds.contains(entry.path().extension().string())) lines += check_file(entry.path());
  CHECK(lines > 10'000);
}
