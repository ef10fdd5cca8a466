// step_rows.h — what a step has to know about its rows, brought to the device in one copy.
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

class step_rows {
 public:
  // Batches of decoding are filled up to one of these, so that few graphs serve all.
  static constexpr std::uint32_t classes[] = {1,  2,  4,  6,   8,   12,  16,  20,  24,  28,  32,  40,  48, 56,
                                              64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512};
  static constexpr std::uint32_t largest_class = 512;

  step_rows(device& d, const head_shape& heads) : d_(d), heads_(heads), there_(d), host_(d, true) {
    if (!d_.failed()) WEIR_CUDA(d_, cudaEventCreateWithFlags(&brought_, cudaEventDisableTiming));
  }
  ~step_rows() {
    if (brought_) cudaEventDestroy(brought_);
  }
  step_rows(const step_rows&) = delete;

  step_extent extent_of(const decoder_step& step, bool decoding) const;

  // True where it moved, as bring() says too.
  bool reserve(std::size_t words) { return there_.reserve(words * 4) | host_.reserve(words * 4); }

  // The step before may still run: its rows lie here until it has. No tokens: memory was short.
  rows_view bring(const decoder_step& step, const step_extent& e, bool& moved);

 private:
  bool holds(std::size_t words) const { return there_.holds(words * 4) && host_.holds(words * 4); }

  device& d_;
  const head_shape heads_;
  grown there_, host_;
  std::vector<decode_row> singles_;
  cudaEvent_t brought_ = nullptr;  // they are on the device: the next step may write over the host's copy
};

}  // namespace weir::kernels::cuda
