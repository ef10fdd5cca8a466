#include "net/access/key_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace weir::net {

key_file::key_file(std::string name) : name_(std::move(name)) {
  if (is_named()) reserve_ = descriptor::spare();
}

core::result<std::vector<api_key>> key_file::read() {
  const stamp now = look();
  if (was_read_ && now.kind != 0 && now.kind != S_IFREG) {  // opening a pipe could wait for ever
    read_ = now;
    return core::bad_param("api-key-file", "--api-key-file {}: only a regular file is read again", name_);
  }
  was_read_ = true;
  std::string text;
  const int why = read_text(text);
  // A file that is there and could not be read stays unread.
  if (why == 0 || now.kind == 0) read_ = now;
  if (why != 0)
    return core::bad_param("api-key-file", "--api-key-file {}: cannot be read: {}", name_,
                           std::strerror(why));
  return parse_api_keys(text, name_);
}

int key_file::read_text(std::string& text) {
  const auto open = [this] { return descriptor(::open(name_.c_str(), O_RDONLY | O_CLOEXEC)); };
  int why = 0;
  descriptor file = open();
  if (file.empty() && (errno == EMFILE || errno == ENFILE)) {
    reserve_.close();
    file = open();
  }
  if (file.empty()) why = errno;
  char piece[16 * 1024];
  while (why == 0) {
    const ssize_t n = ::read(file.get(), piece, sizeof piece);
    if (n == 0) break;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) why = errno;
    if (n > 0) text.append(piece, static_cast<std::size_t>(n));
  }
  file.close();
  if (reserve_.empty()) reserve_ = descriptor::spare();
  return why;
}

bool key_file::has_changed(time_point now) {
  const stamp at = look();
  if (at != seen_) {
    seen_ = at;
    seen_since_ = now;
  }
  return at != read_ && now - seen_since_ >= still;
}

key_file::stamp key_file::look() const {
  struct stat s {};
  stamp out;
  if (::stat(name_.c_str(), &s) != 0) return out;
  const auto ns = [](const timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; };
  out.kind = s.st_mode & S_IFMT;
  if (out.kind != S_IFREG) return out;
  out.device = s.st_dev;
  out.inode = s.st_ino;
  out.bytes = s.st_size;
  out.written_ns = ns(s.st_mtim);
  out.changed_ns = ns(s.st_ctim);
  return out;
}

}  // namespace weir::net
