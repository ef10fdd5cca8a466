#include "core/model/load/opened_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weir::core {
namespace {

error cannot(const char* verb, const std::string& path) {
  return make_error(errc::bad_file, "{}: cannot {}: {}", path, verb, std::strerror(errno));
}

}  // namespace

result<opened_file> opened_file::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return cannot("open", path);
  struct stat st {};
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    ::close(fd);
    return make_error(errc::bad_file, "{}: not a regular file", path);
  }
  const auto size = static_cast<std::size_t>(st.st_size);
  void* data = nullptr;
  if (size > 0) data = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    const error why = cannot("reserve addresses", path);
    ::close(fd);
    return why;
  }
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  return opened_file(path, {static_cast<std::byte*>(data), size}, fd);
}

result<void> opened_file::fetch(std::uint64_t count) {
  constexpr std::uint64_t piece = 256 * 1024;  // a multiple of every page size
  if (count <= fetched_) return {};
  const auto end = std::min<std::uint64_t>((count + piece - 1) / piece * piece, bytes_.size());
  const auto begin = fetched_ / piece * piece;
  if (::mprotect(bytes_.data() + begin, end - begin, PROT_READ | PROT_WRITE) != 0)
    return cannot("find memory", path_);
  if (auto ok = read_at(fetched_, bytes_.subspan(fetched_, end - fetched_)); !ok) return ok;
  fetched_ = end;
  return {};
}

bool opened_file::has(std::span<const std::byte> part) const noexcept {
  const std::less_equal<const std::byte*> before;
  return before(bytes_.data(), part.data()) &&
         before(part.data() + part.size(), bytes_.data() + bytes_.size());
}

result<void> opened_file::read(std::span<const std::byte> part, std::uint64_t at,
                               std::span<std::byte> to) const {
  return read_at(static_cast<std::uint64_t>(part.data() - bytes_.data()) + at, to);
}

result<void> opened_file::read_at(std::uint64_t at, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t n = ::pread(file_, to.data(), to.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot("read", path_);
    if (n == 0)
      return make_error(errc::bad_file, "{}: it ends before byte {} now, and had {} bytes when it was opened",
                        path_, at, bytes_.size());
    at += static_cast<std::uint64_t>(n);
    to = to.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

opened_file::opened_file(opened_file&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, {})),
      fetched_(std::exchange(other.fetched_, 0)),
      file_(std::exchange(other.file_, -1)) {}

opened_file& opened_file::operator=(opened_file&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  std::swap(fetched_, other.fetched_);
  std::swap(file_, other.file_);
  return *this;
}

opened_file::~opened_file() {
  if (bytes_.data()) ::munmap(bytes_.data(), bytes_.size());
  if (file_ >= 0) ::close(file_);
}

result<std::string> read_text_file(const std::string& path, std::size_t limit) {
  auto file = opened_file::open(path);
  if (!file) return file.error();
  const auto bytes = file->bytes();
  if (bytes.size() > limit)
    return make_error(errc::bad_file, "{}: {} bytes, at most {}", path, bytes.size(), limit);
  if (auto ok = file->fetch(bytes.size()); !ok) return ok.error();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

bool file_exists(const std::string& path) noexcept { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace weir::core
