// draws.h — a decoder's draws: their orders on the way to the device, the tokens on the way back.
//
// The tokens of the draws that were begun last stay on the device, too: the next step's rows may be made from them before
// the host has seen them.
//
// Thread safety: the device's.
#pragma once

#include "kernels/cuda/grown.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

class draw_desk {
 public:
  explicit draw_desk(device& d) : d_(d), orders_(d), orders_host_(d, true), saved_(d), results_(d, true), ids_(d) {
    if (!d_.failed()) WEIR_CUDA(d_, cudaEventCreateWithFlags(&drawn_, cudaEventDisableTiming));
  }
  ~draw_desk() {
    if (drawn_) cudaEventDestroy(drawn_);
  }
  draw_desk(const draw_desk&) = delete;

  // Room for so many draws; what ids() holds stays. True where it moved.
  bool reserve(std::uint32_t draws) { return ids_.reserve(draws * sizeof(std::int32_t), true); }

  // REQUIRES: room for them, and the draws before are collected.
  bool begin(std::span<const decoder_draw> draws, float* logits, std::uint32_t vocab);

  // Waits for what was begun last.
  bool collect(std::span<decoder_result> out);

  // [draws] tokens by the draws that were begun last, on the device; 0 where one was a fault.
  const std::int32_t* ids() const { return ids_.as<std::int32_t>(); }

 private:
  device& d_;
  grown orders_, orders_host_, saved_, results_, ids_;
  cudaEvent_t drawn_ = nullptr;
};

}  // namespace weir::kernels::cuda
