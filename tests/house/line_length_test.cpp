// Lines have at most 110 characters, as .clang-format says: lines of sources, of Markdown, of CMake files, of
// `run` and of the scripts of tests/. A line may be longer where it cannot be broken: in a raw string
// literal, and in a table, a code block or a single long word of Markdown.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/source_dir.h"

namespace weir::tests::line_length_test {
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

// The code blocks of a Markdown page.
struct code_blocks {
  bool inside = false;  // the current line is in a code block

  // True if the line has text that cannot be broken: of a code block or a table, or a single word.
  bool read(const std::string& line) {
    const auto begin = line.find_first_not_of(' ');
    if (begin == line.npos) return true;
    if (line.compare(begin, 3, "```") == 0) {
      inside = !inside;
      return true;
    }
    const bool list = line.compare(begin, 2, "- ") == 0 || line.compare(begin, 2, "> ") == 0;
    return inside || line[begin] == '|' || line.find(' ', begin + (list ? 2 : 0)) == line.npos;
  }
};

struct all_text {
  bool read(const std::string&) { return false; }
};

struct verdict {
  std::size_t lines = 0;
  std::vector<std::size_t> too_long;  // numbers of lines
};

// `unbroken.read(line)` gets every line in order and says whether the line may be longer.
template <class Unbroken>
verdict judge(std::istream& in, Unbroken unbroken) {
  constexpr std::size_t longest = 110;
  verdict v;
  for (std::string line; std::getline(in, line);) {
    ++v.lines;
    if (!unbroken.read(line) && characters(line) > longest) v.too_long.push_back(v.lines);
  }
  return v;
}

// Judges a file by its name. `room`: the first folder of its path; empty: it is in no folder.
verdict judge_file(const fs::path& path, const std::string& room) {
  static const std::set<std::string> sources = {".h", ".hpp", ".cpp", ".cu", ".cuh"};
  static const std::set<std::string> scripts = {".py", ".sh", ".js"};
  const std::string name = path.filename().string(), kind = path.extension().string();
  std::ifstream in(path);
  if (sources.contains(kind)) return judge(in, raw_strings());
  if (kind == ".md") return judge(in, code_blocks());
  const bool script = name == "run" || (room == "tests" && scripts.contains(kind));
  if (script || name == "CMakeLists.txt" || kind == ".cmake") return judge(in, all_text());
  return {};
}

// The files of the project by their paths from its root, without models and without packages of npm.
std::vector<fs::path> files() {
  const fs::path root = weir::tests::source_dir();
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.is_regular_file()) found.push_back(entry.path().filename());
  for (const char* room : {".ci", ".cmake", "core", "actors", "net", "kernels", "apps", "tests", "docs"})
    for (fs::recursive_directory_iterator it(root / room), end; it != end; ++it) {
      if (it->path().filename() == "node_modules") it.disable_recursion_pending();
      if (it->is_regular_file()) found.push_back(fs::relative(it->path(), root));
    }
  return found;
}

std::vector<std::size_t> long_lines_of_page(const std::string& page) {
  std::istringstream in(page);
  return judge(in, code_blocks()).too_long;
}

}  // namespace

TEST_CASE("no line has more than 110 characters") {
  std::size_t lines = 0;
  std::set<std::string> kinds;
  for (const auto& path : files()) {
    const std::string room = path.has_parent_path() ? path.begin()->string() : "";
    const verdict v = judge_file(weir::tests::source_dir() / path, room);
    if (v.lines > 0) kinds.insert((path.has_extension() ? path.extension() : path.filename()).string());
    for (const auto number : v.too_long)
      FAIL_CHECK(path.string() << ":" << number << " has more than 110 characters");
    lines += v.lines;
  }
  CHECK(lines > 10'000);
  for (const char* kind : {".h", ".cpp", ".cu", ".md", ".txt", ".cmake", ".py", ".sh", ".js", "run"})
    CHECK(kinds.contains(kind));
}

TEST_CASE("a line that can be broken is told from one that cannot") {
  const std::string word(120, 'x'), text = "a " + word, umlauts = "ä " + std::string(108, 'x');
  CHECK(long_lines_of_page(text + "\n" + umlauts + "\n") == std::vector<std::size_t>{1});
  CHECK(long_lines_of_page("- " + text + "\n- " + word + "\n" + word + "\n") == std::vector<std::size_t>{1});
  CHECK(long_lines_of_page("| " + text + " |\n```\n" + text + "\n```\n" + text + "\n") ==
        std::vector<std::size_t>{5});
  std::istringstream source("auto a = R\"(" + text + "\n" + text + ")\";\n" + text + "\n");
  CHECK(judge(source, raw_strings()).too_long == std::vector<std::size_t>{3});
}

}  // namespace weir::tests::line_length_test
