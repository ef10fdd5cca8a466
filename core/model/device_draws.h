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
  // Makes room for the lists of all draws, whose spans have to stay while further lists are appended.
  void reserve(std::span<const draw> draws);
  // Appends one draw to draws_, and its lists to those below. REQUIRES: reserve().
  void put(const draw& d);
  void put_penalties(const sampler& from, kernels::decoder_draw& o);
  // Logit bias, and what DRY subtracts: a token that has both gets the sum.
  void put_biases(const sampler& from, kernels::decoder_draw& o);
  // The tokens that both the job and its constraint allow.
  void put_allowed(const draw& d, kernels::decoder_draw& o);

  std::vector<kernels::decoder_draw> draws_;
  std::vector<kernels::decoder_result> results_;
  // The lists of all draws, one draw's after another's; draws_ has spans into them.
  std::vector<kernels::decoder_draw::seen_token> seen_;
  std::vector<kernels::decoder_draw::weighted_token> weighted_;
  std::vector<kernels::decoder_draw::bias> biases_;
  std::vector<std::uint32_t> allowed_;
};

}  // namespace weir::core
