// Opens a model of files that came over the bus: text_files.h.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "actors/fleet/text_files.h"

namespace weir::actors::fleet {

namespace fs = std::filesystem;
namespace wire = core::fleet;

namespace {

core::error no_room(const std::string& path) {
  return core::make_error(core::errc::internal, "{}: cannot be written: {}", path, std::strerror(errno));
}

// A directory of this process alone.
class private_directory {
 public:
  private_directory() {
    std::error_code ec;
    auto base = fs::temp_directory_path(ec);
    std::string name = (ec ? fs::path("/tmp") : base) / "weir-model-XXXXXX";
    if (::mkdtemp(name.data())) path_ = name;  // 0700
  }
  private_directory(const private_directory&) = delete;
  private_directory& operator=(const private_directory&) = delete;
  ~private_directory() {
    std::error_code ec;
    if (!path_.empty()) fs::remove_all(path_, ec);
  }
  const std::string& path() const noexcept { return path_; }  // empty: errno says why

 private:
  std::string path_;
};

class written_file {
 public:
  explicit written_file(std::string path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) {}
  written_file(const written_file&) = delete;
  written_file& operator=(const written_file&) = delete;
  ~written_file() {
    if (file_ >= 0) ::close(file_);
  }
  core::result<> write(std::uint64_t at, std::string_view bytes) {
    if (file_ < 0) return no_room(path_);
    while (!bytes.empty()) {
      const auto n = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return no_room(path_);
      bytes.remove_prefix(static_cast<std::size_t>(n));
      at += static_cast<std::uint64_t>(n);
    }
    return {};
  }
  // What was not written takes no room, and is zeros.
  core::result<> grow(std::uint64_t size) {
    if (file_ < 0 || ::ftruncate(file_, static_cast<off_t>(size)) != 0) return no_room(path_);
    return {};
  }

 private:
  const std::string path_;
  const int file_;
};

core::result<> write_directory(const wire::file_list& list, const std::vector<std::string>& contents,
                               const std::string& dir) {
  for (std::size_t i = 0; i < list.files.size(); ++i) {
    const auto path = dir + "/" + list.files[i].name;  // the list's check: a name of the fixed set
    std::error_code ec;
    fs::create_directory(fs::path(path).parent_path(), ec);
    if (auto fine = written_file(path).write(0, contents[i]); !fine) return fine;
  }
  return {};
}

core::result<> write_gguf(const wire::file_list& list, const std::vector<std::string>& contents,
                          const std::string& path) {
  written_file file(path);
  for (std::size_t i = 0; i < list.files.size(); ++i)
    if (auto fine = file.write(list.files[i].at, contents[i]); !fine) return fine;
  return file.grow(list.gguf_size);
}

}  // namespace

core::result<far_model> open_listed_model(const wire::file_list& list,
                                          const std::vector<std::string>& contents, model_spec spec,
                                          const owner_options& o, std::shared_ptr<const core::clock> time,
                                          std::shared_ptr<core::grammar::constraint_cache> constraints) {
  if (!list.made_of.empty()) {
    spec.source = list.made_of;
    return open_far_model(spec, o, std::move(time), std::move(constraints));
  }
  const private_directory dir;
  if (dir.path().empty()) return no_room("a temporary directory");
  spec.source = list.gguf_size == 0 ? dir.path() : dir.path() + "/model.gguf";
  const auto written = list.gguf_size == 0 ? write_directory(list, contents, dir.path())
                                           : write_gguf(list, contents, spec.source);
  if (!written) return written.error();
  return open_far_model(spec, o, std::move(time), std::move(constraints));
}

}  // namespace weir::actors::fleet
