// The rooms may know each other only along the arrows of docs/architecture.md; this reads every include and
// says which one points the wrong way.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "tests/support/source_dir.h"

namespace weir::tests::arrows_test {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::set<std::string>> allowed = {
    {"kernels", {"kernels"}},
    {"core", {"core", "kernels"}},
    {"actors/runtime", {"actors/runtime"}},
    {"actors", {"actors", "actors/runtime", "core", "kernels"}},
    {"net", {"net", "actors", "actors/runtime", "core"}},
    {"net/bus", {"net/bus", "net", "actors", "actors/runtime", "core"}},
    {"net/embed", {"net/embed", "net", "actors", "actors/runtime", "core"}},
    {"net/load", {"net/load", "core"}},
    {"apps", {"apps", "net", "net/bus", "net/load", "actors", "actors/runtime", "core", "kernels"}},
};

std::string room_of(const std::string& path) {
  if (path.starts_with("actors/runtime/")) return "actors/runtime";
  // What embedding programs include is called there as it is outside: weir/engine.hpp.
  if (path.starts_with("net/embed/") || path.starts_with("weir/")) return "net/embed";
  if (path.starts_with("net/bus/")) return "net/bus";
  if (path.starts_with("net/load/")) return "net/load";
  return path.substr(0, path.find('/'));
}

// What is wrong with one include of one file, or nothing.
std::string complaint(const std::string& file, const std::string& target) {
  const auto from = room_of(file);
  if (from == "actors/runtime") {
    // The folder can be copied away: its headers name each other by file name alone.
    const bool own = target.find('/') == std::string::npos || target.starts_with("detail/");
    return own ? "" : file + " includes \"" + target + "\": the runtime knows only itself";
  }
  const auto to = room_of(target);
  if (!allowed.contains(to)) return file + " includes \"" + target + "\": not from the repository root";
  if (!allowed.at(from).contains(to))
    return file + " includes \"" + target + "\": " + from + " may not know " + to;
  return "";
}

}  // namespace

TEST_CASE("every include follows the arrows between the rooms") {
  const std::regex include(R"(^\s*#\s*include\s+"([^"]+)\")");
  std::vector<std::string> wrong;
  std::size_t seen = 0;
  for (const auto& [room, targets] : allowed) {
    const auto root = weir::tests::source_dir() / room;
    if (!fs::exists(root)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      const auto ext = entry.path().extension();
      if (ext != ".h" && ext != ".cpp" && ext != ".cu" && ext != ".cuh" && ext != ".hpp") continue;
      const auto file = fs::relative(entry.path(), weir::tests::source_dir()).string();
      if (room_of(file) != room) continue;  // seen under its own room
      std::ifstream in(entry.path());
      std::smatch m;
      for (std::string line; std::getline(in, line);)
        if (std::regex_search(line, m, include)) {
          ++seen;
          if (auto c = complaint(file, m[1]); !c.empty()) wrong.push_back(c);
        }
    }
  }
  for (const auto& w : wrong) UNSCOPED_INFO(w);
  CHECK(wrong.empty());
  CHECK(seen > 100);
}

TEST_CASE("an include against the arrows is noticed") {
  CHECK(complaint("core/engine.cpp", "net/server.h") != "");
  CHECK(complaint("net/server.cpp", "kernels/ops.h") != "");
  CHECK(complaint("actors/runtime/ref.h", "core/job.h") != "");
  CHECK(complaint("core/engine.cpp", "engine.h") != "");
  CHECK(complaint("net/server.cpp", "net/load/url.h") != "");
  CHECK(complaint("net/server.cpp", "net/bus/nats_bus.h") != "");
  CHECK(complaint("net/embed/engine.cpp", "net/load/url.h") != "");
  CHECK(complaint("net/load/run.cpp", "net/protocol/json.h") != "");
  CHECK(complaint("net/load/run.cpp", "actors/service.h") != "");
  CHECK(complaint("net/load/run.cpp", "core/error.h") == "");
  CHECK(complaint("apps/load.cpp", "net/load/run.h") == "");
  CHECK(complaint("net/server.cpp", "actors/service.h") == "");
  CHECK(complaint("actors/runtime/ref.h", "mailbox.h") == "");
}

}  // namespace weir::tests::arrows_test
