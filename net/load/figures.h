// figures.h — the table of all figures that a report can have: name, unit and meaning of each.
//
// A figure is a distribution, a number, or both (the share of each stream's tokens, and the same share of all
// tokens). The text report, the JSON report, `--assert` and the page all use this table.
//
// Thread safety: constant data; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace weir::load {

enum class figure : std::size_t {
  // distributions
  ttft_ms,
  tpot_ms,
  itl_ms,
  itl_per_token_ms,
  e2el_ms,
  gap_cv,
  shown_gap_cv,
  shown_delay_ms,
  shown_delay_mean_ms,
  shown_delay_max_ms,
  gap_max_ms,
  gap_p99_over_p50,
  stall_ratio,
  coalesced_frac,
  on_schedule_frac,
  fluidity,
  qoe,
  added_jitter_ms,
  cancel_to_done_ms,
  resume_gap_ms,
  sched_lag_ms,
  loop_lag_ms,
  // numbers
  duration_s,
  requests,
  completed,
  cancelled,
  dropped,
  cut,
  refused,
  failed,
  errors,
  input_tokens,
  output_tokens,
  frames,
  output_throughput,
  request_throughput,
  request_goodput,
  gaps,
  repeats,
  text_mismatches,
  texts_compared,
  stall_count,
  source_stall_count,
  late_first_count,
  burst_count,
  tokens_differ,
  disconnects,
  cuts,
  resumes_ok,
  resumes_expired,
  followers,
  followers_failed,
  slow_readers,
  slow_closed,
  leaked_jobs,
  server_rss_bytes,
  server_rss_growth_bytes,
  server_sent_p99_ms,
  client_cpu,
  frames_per_read,
  bottleneck,
};
inline constexpr std::size_t distribution_count = static_cast<std::size_t>(figure::duration_s);
inline constexpr std::size_t figure_count = static_cast<std::size_t>(figure::bottleneck) + 1;

struct figure_entry {
  std::string_view name;
  double unit = 0;        // resolution of the distribution; 0: the figure has no distribution
  bool number = false;    // the figure has a number; beside a distribution: the same over all tokens
  std::string_view what;  // meaning, for people; "…" stands for the subject of an earlier figure
};

inline constexpr std::array<figure_entry, figure_count> figure_table{{
    {"ttft_ms", 1e-3, false, "from the scheduled start to the first token"},
    {"tpot_ms", 1e-3, false, "a completed answer's mean time per token after the first"},
    {"itl_ms", 1e-3, false, "between two frames of a stream, all together"},
    {"itl_per_token_ms", 1e-3, false, "the same, shared out to each token of the frame"},
    {"e2el_ms", 1e-3, false, "from the scheduled start to the last token"},
    {"gap_cv", 1e-6, false, "spread of a stream's gaps over their mean; 0 is a metronome, above 1 bursts"},
    {"shown_gap_cv", 1e-6, false, "the same at the eye, where the client paces as weir's page does"},
    {"shown_delay_ms", 1e-3, false, "what that pacing delays a frame, all together"},
    {"shown_delay_mean_ms", 1e-3, false, "a stream's mean delay by that pacing"},
    {"shown_delay_max_ms", 1e-3, false, "a stream's longest delay by that pacing; 250 ms is its bound"},
    {"gap_max_ms", 1e-3, false, "a stream's longest gap"},
    {"gap_p99_over_p50", 1e-6, false, "a stream's 99th percentile gap over its median"},
    {"stall_ratio", 1e-6, false, "share of a stream's life spent beyond the stall threshold"},
    {"coalesced_frac", 1e-6, true, "tokens that came with others, or within 2 ms of the one before"},
    {"on_schedule_frac", 1e-6, true, "tokens at most 50 ms behind their stream's own mean rate"},
    {"fluidity", 1e-6, false, "share of deadlines of 1.5 median gaps that were met"},
    {"qoe", 1e-6, false, "a reader who waits 1 s and reads 10 tokens/s: 1 is never kept waiting"},
    {"added_jitter_ms", 1e-3, false, "what delivery added after sampling, beyond the stream's least"},
    {"cancel_to_done_ms", 1e-3, false, "from our cancel to the end of the stream"},
    {"resume_gap_ms", 1e-3, false, "from the end of a connection to the next token after the resume"},
    {"sched_lag_ms", 1e-3, false, "how late this harness sent its requests"},
    {"loop_lag_ms", 1e-3, false, "how late this harness came back to its own timers"},
    {"duration_s", 0, true, "measured time, after the warm-up"},
    {"requests", 0, true, "streams of the measured time"},
    {"completed", 0, true, "… that ended as they should"},
    {"cancelled", 0, true, "… that were cancelled by this harness"},
    {"dropped", 0, true, "… whose connection this harness dropped"},
    {"cut", 0, true, "… that the end of the run cut short"},
    {"refused", 0, true, "… that the server refused"},
    {"failed", 0, true, "… that broke off or ended with an error"},
    {"errors", 0, true, "refused and failed"},
    {"input_tokens", 0, true, "prompt tokens, as the server counts them"},
    {"output_tokens", 0, true, "tokens that arrived in the measured time"},
    {"frames", 0, true, "frames that they arrived in"},
    {"output_throughput", 0, true, "tokens a second"},
    {"request_throughput", 0, true, "completed requests a second"},
    {"request_goodput", 0, true, "completed requests a second that met --slo"},
    {"gaps", 0, true, "tokens that seq proves were lost"},
    {"repeats", 0, true, "tokens that seq proves came twice"},
    {"text_mismatches", 0, true, "answers that differ from another reader's, or an earlier one's text"},
    {"texts_compared", 0, true, "answers that had another one to be compared with"},
    {"stall_count", 0, true, "gaps over the larger of 200 ms and 5 median gaps"},
    {"source_stall_count", 0, true, "… that were there when the tokens were sampled"},
    {"late_first_count", 0, true, "first tokens far behind the others'"},
    {"burst_count", 0, true, "streams in which eight tokens or more came together"},
    {"tokens_differ", 0, true, "answers whose frames and tokens differ in number, where frames do not say"},
    {"disconnects", 0, true, "connections that this harness dropped in order to resume"},
    {"cuts", 0, true, "connections that ended otherwise during an answer, which then went on"},
    {"resumes_ok", 0, true, "resumes that the server accepted"},
    {"resumes_expired", 0, true, "resumes of answers that the server no longer kept"},
    {"followers", 0, true, "further readers of an answer that read all of it"},
    {"followers_failed", 0, true, "further readers that were refused, or saw no end"},
    {"slow_readers", 0, true, "streams read slowly on purpose, left out of all latencies"},
    {"slow_closed", 0, true, "sockets that the server closed for reading too slowly (4440)"},
    {"leaked_jobs", 0, true, "jobs still in the server after everybody had left"},
    {"server_rss_bytes", 0, true, "the server's largest resident memory during the run"},
    {"server_rss_growth_bytes", 0, true, "its resident memory after the run less that before"},
    {"server_sent_p99_ms", 0, true, "the server's own sampled-to-sent time, 99th percentile"},
    {"client_cpu", 0, true, "processor time of this harness over its threads' time"},
    {"frames_per_read", 0, true, "frames found in one read of a socket, mean"},
    {"bottleneck", 0, true, "1: this harness could not keep up, and its figures are not the server's"},
}};

constexpr const figure_entry& entry(figure f) { return figure_table[static_cast<std::size_t>(f)]; }

// The figure with this name, from which `_ms` may be omitted; nullopt if there is none.
constexpr std::optional<figure> find_figure(std::string_view name) {
  for (std::size_t i = 0; i < figure_count; ++i) {
    const auto full = figure_table[i].name;
    if (name == full || (full.ends_with("_ms") && name == full.substr(0, full.size() - 3))) return figure{i};
  }
  return std::nullopt;
}

}  // namespace weir::load
