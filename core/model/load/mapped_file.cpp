#include "core/model/load/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace weir::core {
namespace {

error cannot(const char* verb, const std::string& path) {
  return make_error(errc::bad_file, "{}: cannot {}: {}", path, verb, std::strerror(errno));
}

}  // namespace

result<mapped_file> mapped_file::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return cannot("open", path);
  struct stat st {};
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    ::close(fd);
    return make_error(errc::bad_file, "{}: not a regular file", path);
  }
  const auto size = static_cast<std::size_t>(st.st_size);
  void* data = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) {
    const error why = cannot("map", path);
    ::close(fd);
    return why;
  }
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  return mapped_file(path, {static_cast<const std::byte*>(data), size}, fd);
}

result<void> mapped_file::read(std::uint64_t at, std::span<std::byte> to) const {
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

mapped_file::mapped_file(mapped_file&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, {})),
      file_(std::exchange(other.file_, -1)) {}

mapped_file& mapped_file::operator=(mapped_file&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  std::swap(file_, other.file_);
  return *this;
}

mapped_file::~mapped_file() {
  if (bytes_.data()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  if (file_ >= 0) ::close(file_);
}

result<std::string> read_text_file(const std::string& path, std::size_t limit) {
  auto file = mapped_file::open(path);
  if (!file) return file.error();
  const auto bytes = file->bytes();
  if (bytes.size() > limit)
    return make_error(errc::bad_file, "{}: {} bytes, at most {}", path, bytes.size(), limit);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

bool file_exists(const std::string& path) noexcept { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace weir::core
