#include "actors/models_dir.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace weir::actors {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view gguf = ".gguf";

bool is_hidden(std::string_view name) { return name.empty() || name.front() == '.'; }

// Whether `path`, with its links followed, is below `root`, whose links are followed already.
bool is_below(const fs::path& root, const fs::path& path) {
  std::error_code ec;
  const fs::path real = fs::canonical(path, ec);
  if (ec) return false;
  const auto [in_root, in_real] = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
  return in_root == root.end() && in_real != real.end();
}

// NAME-00002-of-00003.gguf: a part of a model that another file begins.
bool is_later_part(std::string_view file) {
  constexpr std::string_view ending = "-00001-of-00001.gguf", of = "-of-";
  if (file.size() <= ending.size()) return false;
  const std::string_view end = file.substr(file.size() - ending.size());
  return end.front() == '-' && end.substr(6, of.size()) == of && end.substr(1, 5) != "00001" &&
         end.substr(1, 5).find_first_not_of("0123456789") == end.npos;
}

// A directory inside a directory: others are no models, so that a project beside the models does not fill the
// list.
bool looks_like_model(const fs::path& dir) {
  std::error_code ec;
  if (fs::exists(dir / "config.json", ec)) return true;
  std::size_t seen = 0;
  for (fs::directory_iterator it(dir, ec), end; !ec && it != end && seen++ < most_models_in_dir;
       it.increment(ec))
    if (it->path().extension() == ".safetensors") return true;
  return false;
}

class scan {
 public:
  explicit scan(const fs::path& root) : root_(root) {}

  // Returns the number of entries that are models, or look like none.
  core::result<std::size_t> look_into(const fs::path& dir, const std::string& before, bool deeper) {
    std::error_code ec;
    std::size_t found = 0;
    for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
      if (++entries_ > most_models_in_dir)
        return core::make_error(core::errc::bad_file, "{}: over {} entries", root_.string(),
                                most_models_in_dir);
      const auto taken = take(it->path(), before, deeper);
      if (!taken) return taken.error();
      found += *taken ? 1 : 0;
    }
    if (ec) return core::make_error(core::errc::bad_file, "{}: {}", dir.string(), ec.message());
    return found;
  }

  std::vector<model_spec> all() const {
    std::vector<model_spec> out;
    for (const auto& [name, path] : found_) out.push_back({name, path});
    return out;
  }

 private:
  core::result<bool> take(const fs::path& path, const std::string& before, bool deeper) {
    const std::string file = path.filename().string();
    std::error_code ec;
    if (is_hidden(file) || !is_below(root_, path)) return false;
    if (fs::is_regular_file(path, ec)) {
      if (!file.ends_with(gguf) || is_later_part(file)) return false;
      const std::string name = before + file.substr(0, file.size() - gguf.size());
      add(found_.contains(name) ? before + file : name, path);
      return true;
    }
    if (!fs::is_directory(path, ec) || (!deeper && !looks_like_model(path))) return false;
    if (deeper && !fs::exists(path / "config.json", ec)) {
      const auto inside = look_into(path, file + "/", false);
      if (!inside) return inside.error();
      if (*inside > 0) return true;
    }
    if (const auto other = found_.find(before + file); other != found_.end()) {  // a file has the name
      auto path_of_file = std::move(other->second);
      add(before + file + std::string(gguf), path_of_file);
    }
    add(before + file, path);
    return true;
  }
  void add(const std::string& name, const fs::path& path) { found_[name] = path.string(); }

  const fs::path root_;
  std::map<std::string, std::string> found_;  // [name] path
  std::size_t entries_ = 0;
};

core::result<fs::path> root_of(const std::string& dir) {
  std::error_code ec;
  fs::path root = fs::canonical(dir, ec);
  if (!ec && !fs::is_directory(root, ec)) ec = std::make_error_code(std::errc::not_a_directory);
  if (ec) return core::make_error(core::errc::bad_file, "{}: {}", dir, ec.message());
  return root;
}

}  // namespace

core::result<std::vector<model_spec>> models_in(const std::string& dir) {
  const auto root = root_of(dir);
  if (!root) return root.error();
  scan all(*root);
  if (const auto ok = all.look_into(*root, "", true); !ok) return ok.error();
  return all.all();
}

bool is_name_in_dir(std::string_view name) {
  const auto slash = name.find('/');
  const std::string_view first = name.substr(0, slash);
  if (is_hidden(first) || name.find('\0') != name.npos) return false;
  if (slash == name.npos) return true;
  const std::string_view second = name.substr(slash + 1);
  return !is_hidden(second) && second.find('/') == second.npos;
}

core::result<std::string> model_in_dir(const std::string& dir, const std::string& name) {
  const auto root = root_of(dir);
  if (!root) return root.error();
  const auto none = core::make_error(core::errc::bad_file, "{} has no model '{}'", dir, name);
  if (!is_name_in_dir(name)) return none;
  for (const std::string& file : {name, name + std::string(gguf)}) {
    std::error_code ec;
    const fs::path path = *root / file;
    const bool is_model =
        fs::is_directory(path, ec) || (file.ends_with(gguf) && fs::is_regular_file(path, ec));
    if (is_model && is_below(*root, path)) return path.string();
  }
  return none;
}

}  // namespace weir::actors
