#include "core/text/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weir::core {
namespace {

error cannot_read(const std::string& path, const char* why) {
  return make_error(errc::bad_file, "{}: cannot be read: {}", path, why);
}

// Everything up to the end of an open file.
result<std::string> rest_of(int file, const std::string& path) {
  std::string text;
  for (;;) {
    char piece[16 * 1024];
    const ssize_t n = ::read(file, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot_read(path, std::strerror(errno));
    if (n == 0) return text;
    text.append(piece, static_cast<std::size_t>(n));
  }
}

}  // namespace

result<std::optional<std::string>> read_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // which opens a pipe at once
  if (file < 0 && (errno == ENOENT || errno == ENOTDIR)) return std::optional<std::string>();
  if (file < 0) return cannot_read(path, std::strerror(errno));
  struct closes {
    const int file;
    ~closes() { ::close(file); }
  } const at_the_end{file};
  struct stat is {};
  if (::fstat(file, &is) != 0) return cannot_read(path, std::strerror(errno));
  if (S_ISDIR(is.st_mode)) return cannot_read(path, "a directory");
  if (!S_ISREG(is.st_mode)) return cannot_read(path, "not a regular file");
  auto text = rest_of(file, path);
  if (!text) return text.error();
  if (text->size() < static_cast<std::size_t>(is.st_size))
    return make_error(errc::bad_file, "{}: it has {} bytes now, and had {} when it was opened", path,
                      text->size(), is.st_size);
  return std::optional(std::move(*text));
}

}  // namespace weir::core
