// draws.h — a decoder's draws: their orders on the way to the device, the tokens on the way back.
//
// Draws that change no logits wait for the next step of decoding and go along in its graph, in front of its rows: what one
// kernel brings and one launch begins need not be two. Others, and those behind which no such step comes, begin alone.
// The tokens of the draws that were begun last stay on the device, too: the next step's rows may be made from them before
// the host has seen them.
//
// Thread safety: the device's.
#pragma once

#include "kernels/cuda/grown.h"
#include "kernels/cuda/sample.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

class draw_desk {
 public:
  explicit draw_desk(device& d)
      : d_(d), orders_(d), orders_host_(d, true), words_(d), words_host_(d, true), saved_(d), results_(d, true), ids_(d) {
    if (!d_.failed()) WEIR_CUDA(d_, cudaEventCreateWithFlags(&drawn_, cudaEventDisableTiming));
  }
  ~draw_desk() {
    if (drawn_) cudaEventDestroy(drawn_);
  }
  draw_desk(const draw_desk&) = delete;

  // Room for so many draws; what has been drawn stays. True where it moved. REQUIRES: none wait.
  bool reserve(std::uint32_t draws);

  // Takes their orders. REQUIRES: room for them, and the draws before are collected.
  bool begin(std::span<const decoder_draw> draws);

  // Those that wait begin now, alone; where none do, nothing happens.
  void start(float* logits, std::uint32_t vocab);

  // Whether those that wait, if any do, may go along with a step of so many rows.
  bool may_go_along(std::uint32_t rows) const { return !waiting_ || (plain_ && count_ > 0 && count_ <= rows); }
  // They do: how many there are, of which the kernel that brings the step's rows is told. 0 where none wait.
  std::uint32_t go_along();
  // Part of a step of `rows` rows: as many of the draws as `there` says, which the device reads.
  void record(std::uint32_t rows, const std::uint32_t* there, float* logits, std::uint32_t vocab);

  // Waits for what was begun last; draws that still wait begin alone.
  bool collect(std::span<decoder_result> out, float* logits, std::uint32_t vocab);

  const draw_order* host_orders() const { return orders_host_.as<draw_order>(); }
  draw_order* orders() const { return orders_.as<draw_order>(); }

  // [draws] tokens by the draws that were begun last, on the device; 0 where one was a fault.
  const std::int32_t* ids() const { return ids_.as<std::int32_t>(); }

 private:
  bool reserve_words(std::span<const decoder_draw> draws);

  device& d_;
  grown orders_, orders_host_, words_, words_host_, saved_, results_, ids_;
  std::uint32_t count_ = 0, word_count_ = 0;
  bool waiting_ = false;  // taken, and not begun
  bool plain_ = false;    // they change no logits
  bool alone_ = false;    // begun by themselves: an event tells when they are done
  cudaEvent_t drawn_ = nullptr;
};

}  // namespace weir::kernels::cuda
