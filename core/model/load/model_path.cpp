#include "core/model/load/model_path.h"

#include <algorithm>
#include <array>
#include <filesystem>

namespace weir::core {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view name_characters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

// Ends of the names of files beside which a model's other files lie.
constexpr std::array<std::string_view, 6> parts_of_directories = {".safetensors", ".json",  ".bin",
                                                                  ".jinja",       ".model", ".tiktoken"};

// OWNER/NAME, as hubs call their repositories.
bool is_repository_name(std::string_view path) {
  const auto slash = path.find('/');
  if (slash == 0 || slash == path.npos || slash + 1 == path.size() || path.front() == '.') return false;
  const auto owner = path.substr(0, slash), name = path.substr(slash + 1);
  return owner.find_first_not_of(name_characters) == owner.npos &&
         name.find_first_not_of(name_characters) == name.npos;
}

}  // namespace

result<void> check_model_path(const std::string& path) {
  std::error_code ec;
  const auto there = fs::status(path, ec);
  if (!fs::exists(there)) {
    const std::string none = path + ": there is no such directory or file";
    if (!is_repository_name(path)) return make_error(errc::bad_file, "{}", none);
    const std::string name = path.substr(path.find('/') + 1);
    return make_error(errc::bad_file,
                      "{}. weir downloads nothing: if this is a repository on a hub, get it with "
                      "`hf download {} --local-dir {}`, and give that directory",
                      none, path, name);
  }
  const bool part = std::ranges::any_of(parts_of_directories, [&](auto end) { return path.ends_with(end); });
  if (fs::is_directory(there) || !part) return {};
  std::string dir = fs::path(path).parent_path().string();
  if (dir.empty()) dir = ".";
  return make_error(errc::bad_file, "{} is one file of a model: give its directory, {}", path, dir);
}

}  // namespace weir::core
