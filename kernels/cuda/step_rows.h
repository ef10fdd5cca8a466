// step_rows.h — what a step has to know about its rows, on the way to the device.
//
// The host writes it into memory of its own that the device sees, and a kernel of the step takes it from there: so a step
// that is replayed is one launch. Draws of the step before may go along (draws.h): how many there are stands there, too.
//
// The host writes the next step's when that kernel has said that this one's are taken and that the draws which went along
// are done.
//
// Thread safety: the device's.
#pragma once

#include "kernels/cuda/grown.h"
#include "kernels/cuda/layers.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

// Of a step as the device computes it: some of it fills up a class.
struct step_extent {
  std::uint32_t rows = 0, logits = 0, decodes = 0, blocks = 0, block_lines = 0;
  bool uneven = false;  // contexts of those that decode
};

// In front of the rows.
struct alignas(16) rows_head {
  std::uint32_t units;   // of 16 bytes, with this one
  std::uint32_t draws;   // of the step before that go along
  std::uint32_t number;  // of the step
  std::uint32_t unused;
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

  // What the step will find on the device once it is brought; `draws` go along. No tokens: memory was short.
  rows_view write(const decoder_step& step, const step_extent& e, std::uint32_t draws, bool& moved);

  // Part of a step, in front of all that reads its rows: brings what was written last. `beside` draws that go along: the
  // kernel before this one is theirs.
  void bring(bool beside);

  // rows_head::draws, as the device reads it from the host.
  const std::uint32_t* draws_along() const { return &host_.as<rows_head>()->draws; }

 private:
  bool holds(std::size_t words) const { return there_.holds(words * 4) && host_.holds(words * 4); }

  device& d_;
  const head_shape heads_;
  grown there_, host_, taken_;  // taken_: the number of the step whose rows were taken last, in the host's memory
  std::uint32_t number_ = 0;    // of the step that was written last
};

}  // namespace weir::kernels::cuda
