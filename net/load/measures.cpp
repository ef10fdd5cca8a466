#include "net/load/measures.h"

#include <cmath>
#include <numeric>

#include "net/load/playout.h"

namespace weir::load {
namespace {

double ms(micros t) { return static_cast<double>(t) / 1000; }

// Computes the gaps, and counts the tokens that came together.
void measure_gaps(std::span<const frame> frames, stream_measures& m) {
  std::uint64_t together = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const frame& f = frames[i];
    m.tokens += f.n;
    const bool follows = i > 0 && ms(f.at - frames[i - 1].at) < together_ms;
    if (f.n > 1 || follows) m.coalesced += f.n;
    together = follows ? together + f.n : f.n;
    m.largest_burst = std::max(m.largest_burst, together);
    if (i > 0) m.gaps.push_back(ms(f.at - frames[i - 1].at));
  }
}

void measure_stalls(std::span<const frame> frames, stream_measures& m) {
  m.stall_threshold = std::max(stall_floor_ms, stall_medians * quantile(m.gaps, 0.5));
  double beyond = 0;
  for (std::size_t i = 0; i < m.gaps.size(); ++i) {
    if (m.gaps[i] <= m.stall_threshold) continue;
    ++m.stalls;
    beyond += m.gaps[i] - m.stall_threshold;
    const auto &before = frames[i].sampled, &after = frames[i + 1].sampled;
    if (before && after && ms(*after - *before) > m.stall_threshold) ++m.source_stalls;
  }
  const double life = ms(frames.back().at - frames.front().at);
  m.stall_ratio = life > 0 ? beyond / life : 0;
}

// Counts the tokens that are on schedule: those that are not later than schedule_slack_ms after their time on
// a line that begins at the first frame and has the stream's mean rate.
std::uint64_t count_on_schedule(std::span<const frame> frames, std::uint64_t tokens) {
  const double mean =
      tokens > 1 ? ms(frames.back().at - frames.front().at) / static_cast<double>(tokens - 1) : 0;
  std::uint64_t before = 0, kept = 0;
  for (const frame& f : frames) {
    const double at = ms(f.at - frames.front().at);
    for (std::uint32_t k = 0; k < f.n; ++k)
      if (at <= static_cast<double>(before + k) * mean + schedule_slack_ms) ++kept;
    before += f.n;
  }
  return kept;
}

std::vector<double> delivery_delays(std::span<const frame> frames) {
  std::vector<double> delays;
  for (const frame& f : frames)
    if (f.sampled) delays.push_back(ms(f.at - *f.sampled));
  if (delays.empty()) return delays;
  const double least = *std::min_element(delays.begin(), delays.end());
  for (double& d : delays) d -= least;
  return delays;
}

void measure_playout(std::span<const frame> frames, stream_measures& m) {
  const auto shown = play_out(frames);
  std::vector<double> gaps(shown.size());
  std::adjacent_difference(shown.begin(), shown.end(), gaps.begin());
  m.shown_gap_cv = coefficient_of_variation(std::span(gaps).subspan(1));
  for (std::size_t i = 0; i < shown.size(); ++i) m.shown_delays.push_back(shown[i] - ms(frames[i].at));
}

}  // namespace

stream_measures measure(const stream_record& r, micros from) {
  stream_measures m;
  if (r.frames.empty()) return m;
  if (r.scheduled >= from) m.ttft = ms(r.frames.front().at - r.scheduled);
  if (r.scheduled >= from && r.how == ending::completed) {
    m.e2el = ms(r.frames.back().at - r.scheduled);
    const auto out = r.output_tokens ? r.output_tokens : r.tokens;
    if (out > 1) m.tpot = (*m.e2el - *m.ttft) / static_cast<double>(out - 1);
  }
  const auto first =
      std::find_if(r.frames.begin(), r.frames.end(), [&](const frame& f) { return f.at >= from; });
  const std::span<const frame> frames(first, r.frames.end());
  measure_gaps(frames, m);
  m.added_jitter = delivery_delays(frames);
  if (frames.empty()) return m;
  m.on_schedule = count_on_schedule(frames, m.tokens);
  if (r.scheduled >= from) m.qoe = quality_of_experience(frames, r.scheduled);
  if (m.gaps.empty()) return m;
  m.gap_cv = coefficient_of_variation(m.gaps);
  measure_playout(frames, m);
  m.gap_max = *std::max_element(m.gaps.begin(), m.gaps.end());
  const double median = quantile(m.gaps, 0.5);
  if (median > 0) {
    m.gap_p99_over_p50 = quantile(m.gaps, 0.99) / median;
    m.fluidity = fluidity(m.gaps, fluid_gap * median);
  }
  measure_stalls(frames, m);
  return m;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto wanted = std::ceil(q * static_cast<double>(values.size()) - 1e-9);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max(1.0, wanted)) - 1;
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double coefficient_of_variation(std::span<const double> values) {
  if (values.empty()) return 0;
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (mean <= 0) return 0;
  double squares = 0;
  for (double v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / n) / mean;
}

// Agrawal et al., "Metron", later called Etalon (arXiv 2407.07000). A token that comes before its deadline
// leaves the remaining time to later tokens. A late token misses as many deadlines as have passed, and the
// next deadline counts from it.
double fluidity(std::span<const double> gaps, double deadline) {
  double slack = 0, met = 0, missed = 0;
  for (double gap : gaps) {
    if (gap <= slack + deadline) {
      slack += deadline - gap;
      met += 1;
    } else {
      missed += std::floor((gap - slack - deadline) / deadline) + 1;
      slack = 0;
    }
  }
  return met + missed > 0 ? met / (met + missed) : 1;
}

// Liu et al., "Andes" (arXiv 2404.16283). A reader reads each token when it has arrived and the one before
// has been read. The result is 1 − (sum of the delays against ideal reading) / (sum of the times of reading).
double quality_of_experience(std::span<const frame> frames, micros scheduled) {
  const double pace = 1000 / reader_rate;
  double read = 0, late = 0, whole = 0;
  std::uint64_t i = 0;
  for (const frame& f : frames) {
    for (std::uint32_t k = 0; k < f.n; ++k, ++i) {
      const double ideal = reader_first_ms + static_cast<double>(i) * pace;
      read = std::max(ms(f.at - scheduled), i == 0 ? reader_first_ms : read + pace);
      late += read - ideal;
      whole += read;
    }
  }
  return whole > 0 ? 1 - late / whole : 1;
}

}  // namespace weir::load
