// fill.h — from a checkpoint's files into a backend's memory: what lies where, and the two ways there.
//
// Where the backend has memory that its uploads read by themselves, several threads read slices of the files
// into it while others of them are under way; else each matrix is put together on the host, one at a time,
// and laid out by the backend. Files are read, not looked at through their mapping: one that is cut short
// meanwhile is an error and not a signal.
//
// Thread safety: each call by one thread; it joins those that it starts. The backend is the caller's
// meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/model/load/safetensors.h"
#include "kernels/ops.h"

namespace weir::core {

// One tensor of a file, of the rows that it makes.
struct piece {
  std::uint64_t elements = 0;
  const stored_tensor* from = nullptr;  // null: random
};

// A matrix or vector in the backend's memory and what it is made of.
struct placed {
  std::byte* to = nullptr;
  kernels::matrix rows;  // a vector: one row. As it lies on the host before the backend gets it
  bool weight = false;   // laid out by the backend; a vector is copied as it is
  bool norm = false;     // random norms lie around 1
  std::vector<piece> pieces;
};

// The type that a file's spelling names; nothing where it cannot be computed with.
std::optional<kernels::dtype> supported_type(std::string_view stored);

// Told how many bytes went on their way since it was told last.
using moved_bytes = std::function<void(std::uint64_t)>;

// One matrix at a time, by fill(piece, where on the host, of what).
using fill_piece = std::function<result<void>(const piece&, std::byte* to, const placed& whole)>;
result<void> fill_in_turn(const std::vector<placed>& all, const kernels::backend& on, const fill_piece& fill);

// So many elements of a tensor from `first` on, as the type that they are to have.
result<void> read_elements(const checkpoint& from, const stored_tensor& t, kernels::dtype type,
                           std::uint64_t first, std::uint64_t count, std::byte* to);

// A whole piece, as the type that it is to have.
result<void> read_piece(const checkpoint& from, const piece& p, kernels::dtype type, std::byte* to,
                        const moved_bytes& moved);

// By several readers (0: as many as are quickest), in slices of at most `lane` bytes.
// REQUIRES: `on` has do_begin_upload, and lays out weights as rows; lane is a multiple of 4.
result<void> upload_slices(const std::vector<placed>& all, const checkpoint& from,
                           const std::shared_ptr<const kernels::backend>& on, const moved_bytes& moved,
                           unsigned readers = 0, std::uint64_t lane = 8u << 20);

}  // namespace weir::core
