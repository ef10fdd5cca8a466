// step_rows.h — what the kernels of a step have to know about its rows, on the way to the device.
//
// The host writes tokens, positions, pages and the like into pinned memory, and a kernel at the beginning of
// the step copies them to the device. A step that is replayed as a graph is therefore a single launch: the
// addresses in the graph stay the same while their contents change. Draws of the step before may run as a
// part of the same launch (draws.h).
//
// After the copy the kernel writes the step's number into pinned memory. Until the host has seen that number
// it must not overwrite the rows, nor the orders of draws that ran with the step.
//
// Thread safety: the device's (device.h).
#pragma once

#include <vector>

#include "kernels/cuda/decoder_room.h"
#include "kernels/cuda/device/grown.h"
#include "kernels/cuda/layers.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

// The size of a step as the device computes it. It may be larger than the decoder_step: the counts are
// rounded up to a batch class or, on a deterministic device, to whole units (decoder_room.h), and what is
// added is padding.
struct step_extent {
  // rows: all rows. logits: rows of logits. decodes: rows that decode_attention computes, each alone in its
  // slice.
  std::uint32_t rows = 0, logits = 0, decodes = 0;
  std::uint32_t entries = 0;  // most entries of rows_view::decode_rows
  // The number of prefill_blocks, and the lines of each (rows_view::block_lines).
  std::uint32_t blocks = 0, block_lines = 0;
  bool listed = false;  // decode_rows is made by list_decodes (layers.h)
};

// The first 16 bytes of what is copied to the device.
struct alignas(16) rows_head {
  std::uint32_t units;   // how many units of 16 bytes are copied, this head included
  std::uint32_t number;  // the step's number, counted by write()
  std::uint32_t unused[2];
};

class step_rows {
 public:
  step_rows(device& d, const head_shape& heads);
  step_rows(const step_rows&) = delete;

  // The extent in which the device computes `step`.
  // REQUIRES: where `decoding`, every slice has one row and there are at most `largest_class` rows
  step_extent extent_of(const decoder_step& step, bool decoding) const;

  // Reserves memory for steps of `words` words of 4 bytes, in pinned memory and on the device. Returns true
  // where one of the two has moved: graphs that were recorded before must then be dropped.
  bool reserve(std::size_t words) { return there_.reserve(words * 4) | host_.reserve(words * 4); }

  // Waits until the device has copied the rows of the last write(), by spinning on the host. False: the
  // device failed. A caller that has collected the draws which ran with that step hardly waits: the copy runs
  // beside those draws.
  bool wait_taken();

  // Waits for the rows written last (wait_taken), then writes the rows of `step` into pinned memory. Returns
  // the addresses on the device where the step's kernels find them once copy_in() has run; `drawn` is left
  // null. `tokens` is null where memory is short or the device failed. `moved` says whether the memory has
  // moved, as reserve() does.
  // REQUIRES: e = extent_of(step, …)
  rows_view write(const decoder_step& step, const step_extent& e, bool& moved);

  // Launches, or records into a graph, the kernel that copies the rows of the last write() to the device. It
  // stands in front of every kernel that reads them. With `beside` the kernel in front of this one is that of
  // the draws which run with the step (draw_launcher::record): the copy then runs beside the draws, and its
  // number is written when both are done. Otherwise the copy starts when everything before it on the stream
  // has ended.
  void copy_in(bool beside);

 private:
  struct places;  // where each array lies in the memory, in words

  // Writes the arrays of `step` to the places in pinned memory, padding included.
  void fill(const decoder_step& step, const step_extent& e, const places& p);
  // Whether both memories hold `words` words.
  bool holds(std::size_t words) const { return there_.holds(words * 4) && host_.holds(words * 4); }

  device& d_;
  const head_shape heads_;
  grown there_, host_;  // the rows on the device; the rows in pinned memory
  grown taken_;         // one word of pinned memory: the number of the step whose rows were copied last
  std::vector<decode_row> singles_;  // scratch of fill(): the rows that are alone in their slice
  std::uint32_t number_ = 0;         // the number of the step that was written last
};

}  // namespace weir::kernels::cuda
