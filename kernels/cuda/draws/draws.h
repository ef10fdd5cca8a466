// draws.h — a decoder's sampling draws: orders go from the host to the device, sampled tokens come back.
//
// An order (sample.h) is what one block of the sampling kernel needs to know of its draw. Orders and results
// lie in pinned memory of the host: each block reads its order there and writes its result there, and
// collect() spins until the result has arrived. The sampled token ids also stay on the device, so that the
// next step's rows can be made from them before the host has seen them.
//
// Where none of the draws of a begin() changes logits (by penalties, biases or masks), begin() does not
// launch them. They wait for the next step and run inside its launch, where that step is of the kind that is
// replayed as a graph (step_rows.h); this saves a launch. If the next step is of another kind, start()
// launches them in front of it; if no step comes, collect() launches them. Where some draw changes logits,
// begin() launches all of them. So it does where some draw is a rare one (decoder_draw::rare): those have a
// kernel of their own (rare.h), behind the kernel of the others.
//
// Orders of waiting draws have a buffer of their own (along_), because a replayed step always reads its
// orders at that address. Where nothing waited, the orders there say `no_draw`.
//
// Thread safety: the device's (device.h).
#pragma once

#include "kernels/cuda/device/grown.h"
#include "kernels/cuda/draws/rare.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

class draw_launcher {
 public:
  explicit draw_launcher(device& d)
      : d_(d),
        orders_(d, true),
        along_(d, true),
        words_(d),
        words_host_(d, true),
        saved_(d),
        results_(d, true),
        logprobs_(d, true),
        ids_(d),
        rares_(d, true),
        surprises_(d, true),
        rare_room_(d) {}
  draw_launcher(const draw_launcher&) = delete;

  // Reserves memory for `draws` draws from rows of `vocab` logits. Results and ids of the last draws are
  // kept. Returns true where a buffer has moved whose address recorded graphs contain: the caller then drops
  // those graphs. Whether the memory was there is said by has_room().
  // REQUIRES: waiting() == 0
  bool reserve(std::uint32_t draws, std::uint32_t vocab);

  // Whether the last reserve() got all the memory that it asked for.
  bool has_room() const { return has_room_; }

  // Takes `draws` from `logits`, [rows, vocab] on the device: launches them, or keeps them waiting for a step
  // (above). The spans inside `draws` have been read when it returns. False: the device failed, or memory is
  // short.
  // REQUIRES: reserve() made room for as many; the draws before are collected; the step that they ran with
  // has taken its rows (step_rows::wait_taken)
  bool begin(std::span<const decoder_draw> draws, float* logits, std::uint32_t vocab);

  // The number of draws that wait for a step.
  std::uint32_t waiting() const { return waiting_; }

  // Launches the waiting draws now, if there are any.
  void start(float* logits, std::uint32_t vocab);

  // Assigns the waiting draws to a step that has been recorded with record(most), and fills the rest of its
  // `most` orders with `no_draw`. Afterwards none wait.
  // REQUIRES: waiting() <= most; the step before has taken its rows (step_rows::wait_taken)
  void go_along(std::uint32_t most);

  // Launches, or records into a graph, the kernel that draws for the orders of go_along(most). It is the
  // first kernel of a step and starts when everything before it on the stream has ended.
  void record(std::uint32_t most, float* logits, std::uint32_t vocab);

  // Waits for the draws of the last begin() and puts their results into `out`, in the same order. Draws that
  // still wait for a step are launched first. Work that was launched after the draws is not waited for.
  // False: the device failed.
  // REQUIRES: out.size() is at most the number of draws of the last begin()
  bool collect(std::span<decoder_result> out, float* logits, std::uint32_t vocab);

  // The logprobs of draw `i` of the last collect(). Valid until the next begin().
  // REQUIRES: that draw asked for them and gave a token
  const draw_logprobs& logprobs_of(std::uint32_t i) const { return logprobs_.as<draw_logprobs>()[i]; }

  // The token ids of the last draws, [draws] in memory of the device; 0 for a draw that gave none.
  // They may be read by kernels that come behind those draws on the stream.
  const std::int32_t* ids() const { return ids_.as<std::int32_t>(); }

 private:
  // Makes words_, words_host_ and saved_ hold `words` words of 4 bytes. False: memory is short.
  bool reserve_words(std::size_t words);

  // Writes an order for each of `draws`, of which the first is draw `first` of a begin(), to `to`, the lists
  // of the draws to words_host_, and «not drawn yet» to their results. The orders of rare draws go to the end
  // of rares_, and `to` gets no_draw for them.
  void write(std::span<const decoder_draw> draws, std::size_t first, draw_order* to);

  // Launches the draws of orders_[first .. first + count).
  void sample(std::size_t first, std::size_t count, float* logits, std::uint32_t vocab);

  // Launches the rare draws of rares_[first .. rare_), as many at once as there is room for.
  void sample_rare(std::size_t first, const float* logits, std::uint32_t vocab);

  // Makes rare_room_ hold the rows of up to `draws` rare draws, at most those of most_rare_rows. Where memory
  // is short for all of them, it holds fewer. False: not one.
  bool reserve_rare(std::size_t draws, std::uint32_t vocab);

  device& d_;
  // orders_: [draws] draw_order in pinned memory, of draws with a launch of their own. along_: the same, of
  // draws that wait for a step or run with one.
  grown orders_, along_;
  // words_: the draws' lists on the device (draw_order::lists_at). words_host_: the same in pinned memory.
  // saved_: one float for each word, on the device; logits that a draw has changed, as they were before.
  // results_: [draws] draw_result in pinned memory. logprobs_: [draws] draw_logprobs in pinned memory.
  // ids_: [draws] int32 on the device.
  grown words_, words_host_, saved_, results_, logprobs_, ids_;
  // rares_: [draws] rare_order in pinned memory; the first rare_ of them are those of the last begin().
  // surprises_: [draws] floats in pinned memory. rare_room_: [rows_at_once_, rare_room(vocab)] floats on the
  // device. most_at_once_: more rows have found no memory.
  grown rares_, surprises_, rare_room_;
  std::size_t rare_ = 0, rows_at_once_ = 0, most_at_once_ = most_rare_rows;
  std::uint32_t waiting_ = 0;
  std::size_t most_words_ = 0;  // how many words words_, words_host_ and saved_ hold
  bool has_room_ = false;
};

}  // namespace weir::kernels::cuda
