// step_rows.h — what a step has to know about its rows, and its draws' orders, on the way to the device.
//
// The host writes them into memory of its own that the device sees, and a kernel in front of the step takes them from
// there: a step is one launch. What it took is what the host had written last; the host writes again when the kernel has
// said that it is done.
//
// Thread safety: the device's.
#pragma once

#include "kernels/cuda/grown.h"
#include "kernels/cuda/layers.h"
#include "kernels/cuda/sample.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

// Of a step as the device computes it: some of it fills up a class.
struct step_extent {
  std::uint32_t rows = 0, logits = 0, decodes = 0, blocks = 0, block_lines = 0;
};

// In front of the rows, in units of 16 bytes as all of it.
struct rows_head {
  std::uint32_t units;   // this and the rows
  std::uint32_t draws;   // orders that are brought, too
  std::uint32_t number;  // of the step: what the host waits to hear
  std::uint32_t unused;
};

class step_rows {
 public:
  // Batches of decoding are filled up to one of these, so that few graphs serve all.
  static constexpr std::uint32_t classes[] = {1,  2,  4,  6,   8,   12,  16,  20,  24,  28,  32,  40,  48, 56,
                                              64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512};
  static constexpr std::uint32_t largest_class = 512;

  step_rows(device& d, const head_shape& heads);

  step_extent extent_of(const decoder_step& step, bool decoding) const;

  // True where it moved, as write() says too.
  bool reserve(std::size_t words) { return there_.reserve(words * 4) | host_.reserve(words * 4); }

  // Waits until the step before has taken its own, and writes this one's; `draws` orders go along.
  rows_view write(const decoder_step& step, const step_extent& e, std::uint32_t draws, bool& moved);

  // Part of a step: takes what the host has written last.
  void bring(const draw_order* host_orders, draw_order* orders) const;

  // How many draws go along, on the device.
  const std::uint32_t* draws_there() const { return &there_.as<rows_head>()->draws; }

 private:
  void fill(const decoder_step& step, const rows_view& host) const;

  device& d_;
  const head_shape heads_;
  grown there_, host_, taken_;
  std::uint32_t number_ = 0;  // of the step that was written last
};

}  // namespace weir::kernels::cuda
