// draws.h — a decoder's draws: their orders on the way to the device, the tokens on the way back.
//
// Draws that change no logits wait for the step behind them, and go along with it where that is one that is
// replayed (step_rows.h): what one launch can begin need not be two. Others begin at once, and those behind
// which no such step comes when it comes, or when they are collected.
//
// Orders and results are memory of the host: a block reads its draw's order there and puts its result there,
// on which collect() waits. A step that is replayed looks for orders in a place of its own, where none stand
// when others begin beside it. The tokens stay on the device, too: the next step's rows may be made from them
// before the host has seen them.
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
      : d_(d),
        orders_(d, true),
        along_(d, true),
        words_(d),
        words_host_(d, true),
        saved_(d),
        results_(d, true),
        ids_(d) {}
  draw_desk(const draw_desk&) = delete;

  // Room for so many draws; what was drawn stays. True where any of it moved that graphs know; has_room()
  // says whether it is there. REQUIRES: none wait.
  bool reserve(std::uint32_t draws, std::uint32_t vocab);
  bool has_room() const { return has_room_; }

  // REQUIRES: room for them, the draws before are collected, and the step that they went along with is taken.
  bool begin(std::span<const decoder_draw> draws, float* logits, std::uint32_t vocab);

  // How many wait for a step.
  std::uint32_t waiting() const { return waiting_; }
  // Those that wait begin now.
  void start(float* logits, std::uint32_t vocab);
  // They begin with a step that has room for `most` of them: none or all. REQUIRES: the step before is taken.
  void go_along(std::uint32_t most);
  // Part of such a step.
  void record(std::uint32_t most, float* logits, std::uint32_t vocab);

  // Waits for what was begun last.
  bool collect(std::span<decoder_result> out, float* logits, std::uint32_t vocab);

  // [draws] tokens by the draws that were begun last, on the device; 0 where one was a fault.
  const std::int32_t* ids() const { return ids_.as<std::int32_t>(); }

 private:
  bool reserve_words(std::size_t words);  // false: memory is short
  void write(std::span<const decoder_draw> draws, draw_order* to, decoder_result* results);
  void sample(std::size_t first, std::size_t count, float* logits, std::uint32_t vocab);

  device& d_;
  grown orders_, along_;  // of draws that begin alone; of those that wait, or go along
  grown words_, words_host_, saved_, results_, ids_;
  std::uint32_t waiting_ = 0;
  std::size_t most_words_ = 0;  // of the draws that are brought at once
  bool has_room_ = false;
};

}  // namespace weir::kernels::cuda
