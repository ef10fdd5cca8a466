#include "net/load/pool.h"

namespace weir::load {
namespace {

constexpr std::size_t kept_findings = 200;
constexpr std::size_t kept_first_tokens = 100;
constexpr std::size_t kept_seconds = 3600;
constexpr std::size_t kept_raster_frames = 2000;  // of one stream

double ms(micros t) { return static_cast<double>(t) / 1000; }

figure figure_of(ending e) {
  switch (e) {
    case ending::completed: return figure::completed;
    case ending::cancelled: return figure::cancelled;
    case ending::dropped: return figure::dropped;
    case ending::cut: return figure::cut;
    case ending::refused: return figure::refused;
    case ending::failed: break;
  }
  return figure::failed;
}

}  // namespace

pool::pool(pool_options o) : o_(std::move(o)) {
  for (std::size_t i = 0; i < distribution_count; ++i) distributions_.emplace_back(figure_table[i].unit);
}

void pool::add(const stream_record& r) {
  if (r.ended < o_.from) return;  // it ended during the warm-up
  const stream_measures m = measure(r, o_.from);
  count(r, m);
  judge_order(r);
  if (r.slow) {
    number(figure::slow_readers) += 1;
    return;
  }
  keep_time(r);
  for (const micros gap : r.resume_gaps) of(figure::resume_gap_ms).add(ms(gap));
  if (r.was_interrupted()) return;  // its gaps are not those of an answer
  if (m.ttft) of(figure::ttft_ms).add(*m.ttft);
  if (m.tpot) of(figure::tpot_ms).add(*m.tpot);
  if (m.e2el) of(figure::e2el_ms).add(*m.e2el);
  for (double g : m.gaps) of(figure::itl_ms).add(g);
  for (double j : m.added_jitter) of(figure::added_jitter_ms).add(j);
  if (m.gap_cv) of(figure::gap_cv).add(*m.gap_cv);
  if (m.shown_gap_cv) {
    double sum = 0, longest = 0;
    for (double d : m.shown_delays) {
      of(figure::shown_delay_ms).add(d);
      sum += d;
      longest = std::max(longest, d);
    }
    of(figure::shown_gap_cv).add(*m.shown_gap_cv);
    of(figure::shown_delay_mean_ms).add(sum / static_cast<double>(m.shown_delays.size()));
    of(figure::shown_delay_max_ms).add(longest);
  }
  if (m.gap_max) of(figure::gap_max_ms).add(*m.gap_max);
  if (m.gap_p99_over_p50) of(figure::gap_p99_over_p50).add(*m.gap_p99_over_p50);
  if (m.stall_ratio) of(figure::stall_ratio).add(*m.stall_ratio);
  if (m.fluidity) of(figure::fluidity).add(*m.fluidity);
  if (m.qoe) of(figure::qoe).add(*m.qoe);
  if (m.tokens > 0) {
    const double tokens = static_cast<double>(m.tokens);
    of(figure::coalesced_frac).add(static_cast<double>(m.coalesced) / tokens);
    of(figure::on_schedule_frac).add(static_cast<double>(m.on_schedule) / tokens);
    coalesced_ += m.coalesced;
    on_schedule_ += m.on_schedule;
    shown_tokens_ += m.tokens;
  }
  number(figure::stall_count) += m.stalls;
  number(figure::source_stall_count) += m.source_stalls;
  judge(r, m);
}

void pool::count(const stream_record& r, const stream_measures& m) {
  number(figure::requests) += 1;
  number(figure_of(r.how)) += 1;
  if (r.how == ending::refused || r.how == ending::failed) {
    number(figure::errors) += 1;
    ++errors_[r.error];
    find("error", r.index, ms(r.ended), r.error);
  }
  if (!r.slow) number(figure::output_tokens) += static_cast<double>(m.tokens);
  number(figure::input_tokens) += static_cast<double>(r.input_tokens);
  number(figure::disconnects) += static_cast<double>(r.disconnects);
  number(figure::cuts) += static_cast<double>(r.cuts);
  number(figure::resumes_ok) += static_cast<double>(r.resumes);
  number(figure::resumes_expired) += r.expired ? 1 : 0;
  if (r.how == ending::completed && r.output_tokens && r.output_tokens != r.tokens)
    number(figure::tokens_differ) += 1;
  if (m.e2el && *m.ttft <= o_.slo.ttft && m.tpot.value_or(0) <= o_.slo.tpot && *m.e2el <= o_.slo.e2el)
    number(figure::request_goodput) += 1;
  if (r.scheduled >= o_.from && !r.slow) of(figure::sched_lag_ms).add(ms(r.sent - r.scheduled));
  if (r.cancel_sent && r.how == ending::cancelled)
    of(figure::cancel_to_done_ms).add(ms(r.ended - *r.cancel_sent));
}

// `reader`: who read the answer, with a blank behind it; empty: the user that asked.
void pool::judge_order(const stream_record& r, std::string_view reader) {
  number(figure::gaps) += static_cast<double>(r.gaps);
  number(figure::repeats) += static_cast<double>(r.repeats);
  if (r.gaps) find("lost token", r.index, ms(r.ended), fmt::format("{}{} lost by seq", reader, r.gaps));
  if (r.repeats)
    find("repeated token", r.index, ms(r.ended), fmt::format("{}{} came twice by seq", reader, r.repeats));
}

void pool::add_follower(const stream_record& asked, const stream_record& followed) {
  if (asked.ended < o_.from || followed.how == ending::cut) return;
  judge_order(followed, "a follower: ");
  if (followed.how == ending::refused || followed.how == ending::failed) {
    number(figure::followers_failed) += 1;
    const std::string why = "follower: " + followed.error;
    ++errors_[why];
    return find("error", asked.index, ms(asked.ended), why);
  }
  if (asked.how != ending::completed && asked.how != ending::cancelled) return;
  number(figure::followers) += 1;
  number(figure::texts_compared) += 1;
  if (followed.text == asked.text && followed.tokens == asked.tokens) return;
  number(figure::text_mismatches) += 1;
  find("text mismatch", asked.index, ms(asked.ended), "a follower read another text");
}

void pool::judge(const stream_record& r, const stream_measures& m) {
  if (m.stalls) {
    const bool source = m.source_stalls == m.stalls;
    find("stall", r.index, ms(r.frames.back().at),
         fmt::format("{} gaps over {:.0f} ms, the longest {:.0f} ms{}", m.stalls, m.stall_threshold,
                     *m.gap_max, source ? "; sampled so late" : ""));
  }
  // Where even the mean time of a token is at most together_ms, tokens always come together: that is no
  // burst.
  const bool slower =
      m.tokens > 0 &&
      ms(r.frames.back().at - r.frames.front().at) / static_cast<double>(m.tokens) > together_ms;
  if (m.largest_burst >= burst_tokens && slower) {
    number(figure::burst_count) += 1;
    find("burst", r.index, ms(r.frames.back().at), fmt::format("{} tokens at once", m.largest_burst));
  }
  if (!m.ttft) return;
  slowest_first_.push_back({*m.ttft, r.index, ms(r.frames.front().at)});
  if (slowest_first_.size() >= 2 * kept_first_tokens) {
    std::ranges::sort(slowest_first_, std::greater(), &first_token::ttft);
    slowest_first_.resize(kept_first_tokens);
  }
}

void pool::keep_time(const stream_record& r) {
  for (std::size_t i = 0; i < r.frames.size(); ++i) {
    const frame& f = r.frames[i];
    if (f.at < o_.from) continue;
    number(figure::frames) += 1;
    const bool counted = i > 0 && r.frames[i - 1].at >= o_.from && !r.was_interrupted();
    const double gap = counted ? ms(f.at - r.frames[i - 1].at) : 0;
    if (counted) of(figure::itl_per_token_ms).add(gap / f.n, f.n);
    const auto at = static_cast<std::size_t>((f.at - o_.from) / 1'000'000);
    if (at >= kept_seconds) continue;
    if (at >= seconds_.size()) seconds_.resize(at + 1);
    seconds_[at].tokens += f.n;
    if (counted) seconds_[at].gaps.add(gap);
  }
  if (raster_.size() >= o_.raster_streams) return;
  line l;
  l.stream = r.index;
  for (const frame& f : r.frames)
    if (f.at >= o_.from && l.frames.size() < kept_raster_frames) l.frames.push_back(f);
  if (!l.frames.empty()) raster_.push_back(std::move(l));
}

void pool::find(std::string name, std::uint64_t stream, double at_ms, std::string what) {
  ++found_[name];
  if (findings_.size() < kept_findings)
    findings_.push_back({std::move(name), stream, at_ms, std::move(what)});
}

void pool::compare_text(std::size_t prompt, const stream_record& r) {
  if (!r.text.empty()) agree(prompt, r.text, r.index, ms(r.ended));
}

void pool::agree(std::size_t prompt, const std::string& text, std::uint64_t stream, double at_ms) {
  const auto [known, first] = texts_.try_emplace(prompt, text);
  if (first) return;
  number(figure::texts_compared) += 1;
  std::string& reference = known->second;
  const auto common = std::min(reference.size(), text.size());
  if (reference.compare(0, common, text, 0, common) != 0) {
    number(figure::text_mismatches) += 1;
    find("text mismatch", stream, at_ms, fmt::format("prompt {}", prompt));
  } else if (text.size() > reference.size()) {
    reference = text;
  }
}

void pool::merge(const pool& other) {
  for (std::size_t i = 0; i < distribution_count; ++i) distributions_[i].merge(other.distributions_[i]);
  for (std::size_t i = 0; i < figure_count; ++i) numbers_[i] += other.numbers_[i];
  coalesced_ += other.coalesced_;
  on_schedule_ += other.on_schedule_;
  shown_tokens_ += other.shown_tokens_;
  if (seconds_.size() < other.seconds_.size()) seconds_.resize(other.seconds_.size());
  for (std::size_t i = 0; i < other.seconds_.size(); ++i) {
    seconds_[i].tokens += other.seconds_[i].tokens;
    seconds_[i].gaps.merge(other.seconds_[i].gaps);
  }
  raster_.insert(raster_.end(), other.raster_.begin(), other.raster_.end());
  findings_.insert(findings_.end(), other.findings_.begin(), other.findings_.end());
  for (const auto& [name, n] : other.found_) found_[name] += n;
  for (const auto& [text, n] : other.errors_) errors_[text] += n;
  slowest_first_.insert(slowest_first_.end(), other.slowest_first_.begin(), other.slowest_first_.end());
  for (const auto& [prompt, text] : other.texts_) agree(prompt, text, 0, 0);
}

void pool::conclude(double duration_s) {
  const double median = of(figure::ttft_ms).quantile(0.5);
  const double late = std::max(median + late_first_ms, median * late_first_medians);
  std::ranges::sort(slowest_first_, std::greater(), &first_token::ttft);
  for (const auto& f : slowest_first_) {
    if (f.ttft <= late) break;
    number(figure::late_first_count) += 1;
    find("late first token", f.stream, f.at_ms,
         fmt::format("{:.0f} ms, where the median is {:.0f} ms", f.ttft, median));
  }
  std::ranges::stable_sort(findings_, {}, &finding::at_ms);
  const double tokens = static_cast<double>(shown_tokens_);
  number(figure::coalesced_frac) = tokens > 0 ? static_cast<double>(coalesced_) / tokens : 0;
  number(figure::on_schedule_frac) = tokens > 0 ? static_cast<double>(on_schedule_) / tokens : 0;
  number(figure::duration_s) = duration_s;
  const double rate = duration_s > 0 ? 1 / duration_s : 0;
  number(figure::output_throughput) = number(figure::output_tokens) * rate;
  number(figure::request_throughput) = number(figure::completed) * rate;
  number(figure::request_goodput) *= rate;
}

std::optional<double> pool::value(std::string_view name, std::string_view statistic) const {
  const auto f = find_figure(name);
  if (!f) return std::nullopt;
  if (statistic.empty()) return entry(*f).number ? std::optional(number(*f)) : std::nullopt;
  if (entry(*f).unit == 0) return std::nullopt;
  const histogram& h = of(*f);
  if (h.count() == 0) return std::nullopt;
  if (statistic == "max") return h.max();
  if (statistic == "min") return h.min();
  if (statistic == "mean") return h.mean();
  for (const auto& [s, q] :
       {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}})
    if (statistic == s) return h.quantile(q);
  return std::nullopt;
}

}  // namespace weir::load
