// mapped_file.h — a file's bytes, read-only, for as long as the object lives.
//
// Looking at a mapped byte that the file lost meanwhile ends the process; read() says so instead, and is what
// large parts of a file are taken by.
//
// Thread safety: immutable once open; any thread may read the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/error.h"

namespace weir::core {

class mapped_file {
 public:
  static result<mapped_file> open(const std::string& path);

  mapped_file(mapped_file&& other) noexcept;
  mapped_file& operator=(mapped_file&& other) noexcept;
  ~mapped_file();

  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  // What is in the file now, from `at` on; an error where it ends before.
  result<void> read(std::uint64_t at, std::span<std::byte> to) const;
  const std::string& path() const noexcept { return path_; }

 private:
  mapped_file(std::string path, std::span<const std::byte> bytes, int file)
      : path_(std::move(path)), bytes_(bytes), file_(file) {}

  std::string path_;
  std::span<const std::byte> bytes_;
  int file_ = -1;
};

// A small text file whole; `limit` guards against reading something else by mistake.
result<std::string> read_text_file(const std::string& path, std::size_t limit = 64u << 20);
bool file_exists(const std::string& path) noexcept;

}  // namespace weir::core
