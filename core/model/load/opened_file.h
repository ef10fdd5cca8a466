// opened_file.h — a read-only file of which only those bytes are in memory that were asked for. All of its
// bytes have addresses, so that a part of the file is a span, also where it is not in memory.
//
// The file is not mapped: where it is truncated, or its device fails, while the object lives, reads return an
// error, and no signal comes.
//
// Thread safety: fetch() by one thread, before others use the object; then any thread. Error: bad_file, with
// the path in the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/error.h"

namespace weir::core {

class opened_file {
 public:
  // Anything but a regular file is an error.
  static result<opened_file> open(const std::string& path);

  opened_file(opened_file&& other) noexcept;
  opened_file& operator=(opened_file&& other) noexcept;
  ~opened_file();

  // The bytes that the file had when it was opened. Nobody may look at a byte that fetch() did not bring.
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  // Brings the first `count` bytes into memory, if they are not there yet.
  result<void> fetch(std::uint64_t count);
  // Reads a part of bytes() from the file as it is now; an error if the file ends before. `at`: of the first
  // byte in the part.
  result<void> read(std::span<const std::byte> part, std::uint64_t at, std::span<std::byte> to) const;
  bool has(std::span<const std::byte> part) const noexcept;
  const std::string& path() const noexcept { return path_; }

 private:
  opened_file(std::string path, std::span<std::byte> bytes, int file)
      : path_(std::move(path)), bytes_(bytes), file_(file) {}
  result<void> read_at(std::uint64_t at, std::span<std::byte> to) const;

  std::string path_;
  std::span<std::byte> bytes_;  // addresses without memory, from fetched_ on
  std::uint64_t fetched_ = 0;
  int file_ = -1;
};

// Brings the first `count` bytes of a file into memory before a parser looks at them; empty: all are there.
using fetch_bytes = std::function<result<void>(std::uint64_t count)>;
inline fetch_bytes fetching(opened_file& file) {
  return [&file](std::uint64_t count) { return file.fetch(count); };
}

// The content of a small file. A file of more than `limit` bytes is an error, since it must be something
// else.
result<std::string> read_text_file(const std::string& path, std::size_t limit = 64u << 20);
// Whether there is anything at `path`, a file or a directory.
bool file_exists(const std::string& path) noexcept;

}  // namespace weir::core
