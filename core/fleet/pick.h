// pick.h — which of the places of a model takes a job, where the model runs in several.
//
// A job goes where it costs least: the predicted time of its first token, and what others wait for its
// prompt.
//   - An engine serves short prompts before long ones (core/schedule/scheduler.h): a prompt with n tokens to
//     compute waits for n tokens at most of each prompt that is there already.
//   - What has to be computed keeps those waiting who come behind. Tokens of the prompt that are not in a
//     place's cache therefore count twice.
//   - Of places that are about as quick, one with a quarter more jobs than the mean comes behind the others,
//     so that one beginning that everybody uses does not fill one place while others stand idle (V. Mirrokni
//     et al., «Consistent hashing with bounded loads», 2018). Then the one that has most of the prompt in its
//     cache comes first.
//   - Equal beginnings of prompts meet. What is equal otherwise is decided by the beginning's hash, so that a
//     conversation finds the pages that its last answer left (rendezvous hashing: D. Thaler, C. Ravishankar,
//     «Using name-based mappings to increase hit rates», 1998).
//   - A place without a seat comes behind all others that are not far slower.
// docs/fleet.md, «The simulation», has what each of these is worth.
//
// Thread safety: a pure function; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/clock.h"

namespace weir::core {

struct place_load {
  std::uint64_t name = 0;          // the place keeps it; no two places of a model have the same
  std::uint32_t jobs = 0;          // that run or wait there
  std::uint32_t seats = 1;         // jobs that can run there at a time
  duration wait{};                 // predicted, of a job that came now, until it has a seat
  double prompt_tokens_per_s = 0;  // 0: not known yet; it counts as that of the fastest place
  // Prompts there that are not computed yet, and their tokens. No prompts but tokens: it is not known how
  // many.
  std::uint32_t prompts = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint32_t known = 0;         // tokens of the prompt that are in its cache
};

// Indices of the places, the best one first. `jobs`: that come together and stay together. `beginning`: a
// hash of the first tokens of their prompt.
std::vector<std::uint32_t> pick(std::span<const place_load> places, std::uint32_t jobs,
                                std::uint32_t prompt_tokens, std::uint64_t beginning);

}  // namespace weir::core
