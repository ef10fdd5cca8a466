// mapped_file.h — a read-only file that is mapped into memory while the object lives.
//
// If the file is truncated after it was opened, access to a mapped byte past its end kills the process with a
// signal. read() returns an error instead, so large parts of a file are read with it.
//
// Thread safety: immutable once open; any thread. Error: bad_file, with the path in the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/error.h"

namespace weir::core {

class mapped_file {
 public:
  // Anything but a regular file is an error.
  static result<mapped_file> open(const std::string& path);

  mapped_file(mapped_file&& other) noexcept;
  mapped_file& operator=(mapped_file&& other) noexcept;
  ~mapped_file();

  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  // Reads to.size() bytes at offset `at` from the file as it is now; an error if the file ends before.
  result<void> read(std::uint64_t at, std::span<std::byte> to) const;
  const std::string& path() const noexcept { return path_; }

 private:
  mapped_file(std::string path, std::span<const std::byte> bytes, int file)
      : path_(std::move(path)), bytes_(bytes), file_(file) {}

  std::string path_;
  std::span<const std::byte> bytes_;
  int file_ = -1;
};

// The content of a small file. A file of more than `limit` bytes is an error, since it must be something
// else.
result<std::string> read_text_file(const std::string& path, std::size_t limit = 64u << 20);
// Whether there is anything at `path`, a file or a directory.
bool file_exists(const std::string& path) noexcept;

}  // namespace weir::core
