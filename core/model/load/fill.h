// fill.h — copies weights from a checkpoint's files to a backend's memory, in one of two ways.
//
// upload_slices() is for a backend that uploads asynchronously: several threads read slices of the files into
// host memory that the device can read, while earlier slices are uploaded. fill_one_by_one() is for any
// backend: one matrix at a time is assembled on the host and passed to the backend, which lays it out.
//
// Files are read, not accessed through their mapping. A file that is truncated meanwhile is then an error and
// not a signal.
//
// Thread safety: nobody else may use the backend during a call. Threads that a call starts end before it
// returns.
//
// Errors: bad_file for a file that cannot be read; does_not_fit where host memory is short; internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/model/load/checkpoint.h"
#include "kernels/ops.h"

namespace weir::core {

// The part of a matrix or vector that comes from one tensor.
struct piece {
  std::uint64_t elements = 0;
  const stored_tensor* from = nullptr;  // null: a constant or random values
  float plus = 0;                       // is added to every element, in f32; a constant: the elements
  bool constant = false;
};

// A matrix or vector in the backend's memory, and the pieces that it is made of, in order.
struct placed {
  std::byte* to = nullptr;
  kernels::matrix rows;  // its form on the host, before the backend lays it out; a vector is one row
  bool weight = false;   // a matrix, which the backend lays out; a vector is copied as it is
  bool norm = false;     // a norm, whose random values are around 1
  std::vector<piece> pieces;
};

// The type with this name in a file of any container; nullopt if it is not supported.
std::optional<kernels::dtype> supported_type(std::string_view stored);

// Is called on the caller's thread with the number of bytes copied since the previous call.
using moved_bytes = std::function<void(std::uint64_t)>;

// Writes one piece of `whole` to host memory at `to`.
using fill_piece = std::function<result<void>(const piece&, std::byte* to, const placed& whole)>;
// Fills one matrix or vector after the other. `fill` is called for each piece.
result<void> fill_one_by_one(const std::vector<placed>& all, const kernels::backend& on,
                             const fill_piece& fill);

// Reads `count` elements of a tensor, from element `first` on, and converts them to `type`. REQUIRES: `type`
// is the stored type or f32; both numbers are whole blocks of the stored type.
result<void> read_elements(const checkpoint& from, const stored_tensor& t, kernels::dtype type,
                           std::uint64_t first, std::uint64_t count, std::byte* to);

// Writes a piece that is a constant. `to` is [elements] f32.
void fill_constant(const piece& p, std::byte* to);

// Reads elements of a piece as read_elements() does, and adds piece::plus to them; or writes a constant.
// REQUIRES: `type` is f32 where plus is not 0, and for a constant
result<void> read_some(const checkpoint& from, const piece& p, kernels::dtype type, std::uint64_t first,
                       std::uint64_t count, std::byte* to);

// Reads a whole piece and converts it to `type`, as read_some() does.
result<void> read_piece(const checkpoint& from, const piece& p, kernels::dtype type, std::byte* to,
                        const moved_bytes& moved);

// Fills everything in slices of about `lane` bytes at most. `readers`: the threads that read slices; 0: as
// many as suit the machine. Slices of quantised weights are whole rows, or the parts of a converted tensor
// (checkpoint.h), which the backend packs (do_begin_pack); lanes are made longer where one of them is longer.
// REQUIRES: `on` has do_begin_upload, stores plain weights as rows, and has do_begin_pack where it takes
// blocks; `lane` is a multiple of 4; no piece is random.
result<void> upload_slices(const std::vector<placed>& all, const checkpoint& from,
                           const std::shared_ptr<const kernels::backend>& on, const moved_bytes& moved,
                           unsigned readers = 0, std::uint64_t lane = 4u << 20);

}  // namespace weir::core
