// file_list.h — which files a gateway needs of a model beside its weights, and how they are listed.
//
// A list names files of a fixed set, each once, in one order: no name that comes over the bus is ever a path.
// The digest of a list is its SHA-256, and a list has the SHA-256 of each file. So whoever knows the digest
// can check all of them.
//
// Of a GGUF file the list has what stands before its tensors, and those tensors that are read with the
// configuration. They are pieces of one file whose size is known.
//
// Thread safety: plain data; pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace weir::core::fleet {

using sha256_bytes = std::array<std::uint8_t, 32>;

struct listed_file {
  std::string name;        // one of directory_files() or gguf_pieces()
  std::uint64_t size = 0;  // in bytes
  std::uint64_t at = 0;    // of a piece of a GGUF file: its place there
  sha256_bytes sum{};
};

struct file_list {
  // A model without files, as is_made() says; else empty.
  std::string made_of;
  std::uint64_t gguf_size = 0;  // bytes of the GGUF file whose pieces these are; 0: the files of a directory
  std::vector<listed_file> files;
};

inline constexpr std::uint64_t most_file_bytes = std::uint64_t{64} << 20;  // of all files together
inline constexpr std::size_t longest_file_list = 4096;

// The files of a model's directory that are read beside its weights.
std::span<const std::string_view> directory_files();
// What stands before the tensors of a GGUF file, and tensors by their names there.
std::span<const std::string_view> gguf_pieces();
// Whether a model is made of this text alone: "sim", or "random:" and the name of a shape.
bool is_made(std::string_view source);

std::string bytes_of(const file_list& l);
// Errors: invalid_param for what is no list; does_not_fit for one whose files have more than most_file_bytes.
result<file_list> read_file_list(std::string_view bytes);
// The same judgement of a list that is about to be given.
result<void> check_file_list(const file_list& l);

// 64 hexadecimal digits.
std::string digest_text(const sha256_bytes& d);
std::optional<sha256_bytes> parse_digest(std::string_view text);

}  // namespace weir::core::fleet
