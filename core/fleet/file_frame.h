// file_frame.h — the frames by which a gateway gets the text files of a model from a worker (file_list.h): a
// question for a piece under the worker's control subject, and the answer.
//
// Thread safety: plain data; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/fleet/file_list.h"

namespace weir::core::fleet {

struct file_wish {
  sha256_bytes digest{};   // of the list
  std::uint32_t file = 0;  // 0: the list itself; n: its n-th file
  std::uint64_t at = 0;    // first byte of the piece
};

// What the piece's length is, the worker decides: the longest that a message has room for, or what is left.
struct file_part {
  sha256_bytes digest{};  // these three as in the question
  std::uint32_t file = 0;
  std::uint64_t at = 0;
  bool there = false;  // the worker has such files, and the file has bytes from there on
  std::string bytes;   // at most longest_file_part
};
inline constexpr std::size_t longest_file_part = std::size_t{512} << 10;
inline constexpr std::size_t file_part_head = 64;  // more than what stands before a part's bytes

std::string frame_of(const file_wish& f);
std::string frame_of(const file_part& f);
// nullopt: another frame, or one that is cut or has a value that it may not have.
std::optional<file_wish> read_file_wish(std::string_view frame);
std::optional<file_part> read_file_part(std::string_view frame);

}  // namespace weir::core::fleet
