// device_draws.h — draws in the form that a decoder on a device takes, and the decoder's results as tokens.
//
// Every model that computes with a kernels::decoder shares this conversion. It is the one place where
// sampling parameters (core/sample/params.h) become fields of kernels::decoder_draw.
//
// Thread safety: the owner's thread only. No call allocates once the arrays are as long as the longest lists.
#pragma once

#include <span>
#include <vector>

#include "core/model/model.h"
#include "kernels/decoder.h"

namespace weir::core {

class device_draws {
 public:
  // Begins the draws: model::begin_draws() on a decoder. Everything that `draws` refers to has been read when
  // it returns. False: as kernels::decoder::draw().
  bool begin(kernels::decoder& on, std::span<const draw> draws);

  // Waits for the draws begun last: model::collect() on a decoder. False: as kernels::decoder::collect().
  // REQUIRES: `out` has the length of those draws.
  bool collect(kernels::decoder& on, std::span<drawn> out);

 private:
  // Appends one draw to draws_, and its lists to seen_ and biases_. REQUIRES: those have room for the lists.
  void put(const draw& d);

  std::vector<kernels::decoder_draw> draws_;
  std::vector<kernels::decoder_result> results_;
  // The lists of all draws, one draw's after another's; draws_ has spans into them.
  std::vector<kernels::decoder_draw::seen_token> seen_;
  std::vector<kernels::decoder_draw::bias> biases_;
};

}  // namespace weir::core
