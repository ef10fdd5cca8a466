#include "core/schedule/prefill_budget.h"

#include <algorithm>

namespace weir::core {
namespace {

constexpr std::uint32_t first_slice = 64;     // before anything was measured
constexpr std::uint32_t smallest_slice =
    16;  // a prompt moves on even where decoding alone exceeds the target
// smallest_shared: smallest slice if limits_.share is set. A device with a share reads its weights once for
// that many rows: fewer rows would hardly take less time, and prompts would pile up. quickest: rows of a step
// beside at most `few_decode` sequences. The narrowest products take such a step in less time; a few rows
// more take as long as a full slice.
constexpr std::uint32_t smallest_shared = 128, quickest = 64, few_decode = 8;
// longest slice if limits_.share is set, however many prompts wait: more rows would not take less time a row
constexpr std::uint32_t most_shared = 512;
// number of steps with prompt rows for which the time of the last step without them is used
constexpr std::uint32_t trusted_for = 64;
constexpr double weight = 0.25;               // of the newest measurement
constexpr std::uint32_t few = 8;              // at most this many waiting prompts are no crowd
constexpr double crowding = 8;  // factor of the share: times prompts beyond `few` per decoding sequence
constexpr double surprise = 4;  // a measured row counts as at most this many times the mean

double blend(double mean, double value) { return mean + weight * (value - mean); }

}  // namespace

// A step of half or twice as many rows says little about the next step.
bool prefill_budget::knows_step(std::uint32_t decoding) const noexcept {
  return step_ns_ != unknown && since_step_ < trusted_for && decoding < 2 * step_rows_ &&
         step_rows_ < 2 * decoding;
}

// Both bounds count if both are set: the time of the whole step, and the share that prompts may add.
double prefill_budget::room(std::uint32_t decoding, std::uint32_t waiting) const noexcept {
  const double step = std::max(0.0, step_ns_);
  const double whole = static_cast<double>(limits_.while_decoding.count()) - step;
  const double crowd = std::max({1.0, static_cast<double>(waiting) / decoding,
                                 waiting > few ? crowding * (waiting - few) / decoding : 0.0});
  const double part = limits_.share * crowd * step;
  if (limits_.share <= 0) return whole;
  return limits_.while_decoding > duration::zero() ? std::min(whole, part) : part;
}

// If limits_.share is set, a slice below smallest_shared rows becomes one of that many rows, or fills a step
// of `quickest` rows.
double prefill_budget::worthwhile(double fit, std::uint32_t decoding) const noexcept {
  if (limits_.share <= 0) return std::max<double>(fit, smallest_slice);
  if (fit >= smallest_shared) return fit;
  return decoding <= few_decode ? quickest - decoding : smallest_shared;
}

std::uint32_t prefill_budget::rows(std::uint32_t decoding, std::uint32_t waiting) noexcept {
  const bool beside = decoding > 0;
  if (beside && limits_.share > 0 && !knows_step(decoding)) return granted_ = 0;
  const std::uint32_t most = beside && limits_.share > 0 ? std::min(limits_.rows, most_shared) : limits_.rows;
  granted_ = most;
  const bool bounded = beside ? limits_.share > 0 || limits_.while_decoding > duration::zero()
                              : limits_.alone > duration::zero();
  if (!bounded) return granted_;
  if (row_ns_ == unknown) return granted_ = std::min(first_slice, most);
  const double time = beside ? room(decoding, waiting) : static_cast<double>(limits_.alone.count());
  if (time >= row_ns_ * most) return granted_;
  return granted_ = std::min(static_cast<std::uint32_t>(worthwhile(time / row_ns_, decoding)), most);
}

void prefill_budget::observe(std::uint32_t decode_rows, std::uint32_t prompt_rows, duration took,
                             std::uint32_t granted) noexcept {
  const auto ns = static_cast<double>(took.count());
  if (prompt_rows == 0) {
    step_ns_ = knows_step(decode_rows) ? blend(step_ns_, ns) : ns;
    step_rows_ = decode_rows;
    since_step_ = 0;
    return;
  }
  ++since_step_;
  const double cost = std::max(0.0, ns - (decode_rows > 0 ? std::max(0.0, step_ns_) : 0)) / prompt_rows;
  if (row_ns_ == unknown) {
    row_ns_ = cost;
  } else if (prompt_rows >= granted) {
    row_ns_ = blend(row_ns_, row_ns_ > 0 ? std::min(cost, surprise * row_ns_) : cost);
  }
}

}  // namespace weir::core
