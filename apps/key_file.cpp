#include "apps/key_file.h"

#include <sys/stat.h>

#include <fstream>
#include <iterator>

namespace weir::apps {

core::result<std::vector<net::api_key>> key_file::read() {
  const stamp now = look();
  read_ = now;
  if (was_read_ && now.kind != 0 && now.kind != S_IFREG)  // opening a pipe could wait for ever
    return core::bad_param("api-key-file", "--api-key-file {}: only a regular file is read again", name_);
  was_read_ = true;
  std::ifstream in(name_, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in) return core::bad_param("api-key-file", "--api-key-file {}: cannot be read", name_);
  return net::parse_api_keys(text, name_);
}

bool key_file::has_changed() {
  const stamp now = look();
  const bool settled = now == seen_;
  seen_ = now;
  return settled && now != read_;
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

}  // namespace weir::apps
