// data.h — where tests find reference data, and files of their own.
//
// TEST_DATA_DIR names the folder; without it, shared/data beside the checkout. Data may be missing: a test
// then says so with WARN and falls back on what it can make itself.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/source_dir.h"

namespace weir::tests {

inline std::filesystem::path data_dir() {
  if (const char* named = std::getenv("TEST_DATA_DIR")) return named;
  return weir::tests::source_dir() / ".." / "shared" / "data";
}

// Folders of a folder that hold `file`, sorted by name; empty where it is missing.
inline std::vector<std::filesystem::path> folders_with(const std::filesystem::path& below,
                                                       const std::string& file) {
  std::vector<std::filesystem::path> out;
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(below, ec))
    if (std::filesystem::exists(entry.path() / file)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}
// The same below data_dir().
inline std::vector<std::filesystem::path> data_folders(const std::string& below, const std::string& file) {
  return folders_with(data_dir() / below, file);
}

// The models that ship with the repository: always there.
inline std::vector<std::filesystem::path> bundled_models() {
  const auto models = weir::tests::source_dir() / "models";
  return {models / "rill", models / "rill-draft"};
}

// Tiny models of families that no data outside has (tests/data/families/README.md).
inline std::vector<std::filesystem::path> bundled_families() {
  return folders_with(weir::tests::source_dir() / "tests" / "data" / "families", "reference.json");
}

// The bundled models, and every model with a reference below data_dir().
inline std::vector<std::filesystem::path> reference_models() {
  auto out = bundled_models();
  const auto others = data_folders("models", "reference.json");
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

// A folder that lives as long as the object.
class temporary_dir {
 public:
  temporary_dir() {
    static std::atomic<unsigned> count{0};
    path_ = std::filesystem::temp_directory_path() /
            ("weir-test-" + std::to_string(::getpid()) + "-" + std::to_string(++count));
    std::filesystem::create_directories(path_);
  }
  temporary_dir(const temporary_dir&) = delete;
  temporary_dir& operator=(const temporary_dir&) = delete;
  ~temporary_dir() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace weir::tests
