// step_rows.h — what a step has to know about its rows, on the way to the device.
//
// The host writes it into memory of its own that the device sees, and a kernel of the step takes it from
// there: so a step that is replayed is one launch. Draws of the step before may go along (draws.h). The host
// writes again, rows or orders of draws, when that kernel has said that it has taken these and that those
// draws are done.
//
// Thread safety: the device's.
#pragma once

#include <vector>

#include "kernels/cuda/grown.h"
#include "kernels/cuda/layers.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

// Of a step as the device computes it: some of it fills up a class.
struct step_extent {
  std::uint32_t rows = 0, logits = 0, decodes = 0;
  std::uint32_t entries = 0;  // of decode_rows, at most
  std::uint32_t blocks = 0, block_lines = 0;
  bool listed = false;  // those that decode (layers.h)
};

// In front of the rows.
struct alignas(16) rows_head {
  std::uint32_t units;   // of 16 bytes, with this one
  std::uint32_t number;  // of the step
  std::uint32_t unused[2];
};

class step_rows {
 public:
  // Batches of decoding are filled up to one of these, so that few graphs serve all.
  static constexpr std::uint32_t classes[] = {1,  2,  4,  6,   8,   12,  16,  20,  24,  28,  32,  40,  48, 56,
                                              64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512};
  static constexpr std::uint32_t largest_class = 512;

  step_rows(device& d, const head_shape& heads);
  step_rows(const step_rows&) = delete;

  step_extent extent_of(const decoder_step& step, bool decoding) const;

  // True where it moved, as write() says too.
  bool reserve(std::size_t words) { return there_.reserve(words * 4) | host_.reserve(words * 4); }

  // Waits until what was written last is taken; false: the device failed. Whoever runs ahead has waited for
  // the draws of the step before, which went along with it: its rows are taken, too, or will be at once.
  bool wait_taken();

  // What the step will find on the device once it is brought. No tokens: memory was short.
  rows_view write(const decoder_step& step, const step_extent& e, bool& moved);

  // Part of a step, in front of all that reads its rows: takes what was written last. `beside` draws that go
  // along: the kernel before this one is theirs.
  void bring(bool beside);

 private:
  struct places;
  void fill(const decoder_step& step, const step_extent& e, const places& p);
  bool holds(std::size_t words) const { return there_.holds(words * 4) && host_.holds(words * 4); }

  device& d_;
  const head_shape heads_;
  grown there_, host_;
  grown taken_;  // in the host's memory: the number of the step whose rows were taken last
  std::vector<decode_row> singles_;
  std::uint32_t number_ = 0;  // of the step that was written last
};

}  // namespace weir::kernels::cuda
