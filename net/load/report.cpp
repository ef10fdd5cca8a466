#include "net/load/report.h"

#include <algorithm>
#include <boost/json/array.hpp>

namespace weir::load {
namespace {

namespace json = boost::json;

constexpr std::pair<const char*, double> quantiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}};

constexpr double late_ms = 5, busy = 0.9;

// A number for people, with three or four significant digits.
std::string brief(double v) {
  if (v == std::floor(v)) return fmt::format("{:.0f}", v);
  const double size = std::abs(v);
  return size >= 1000   ? fmt::format("{:.0f}", v)
         : size >= 10   ? fmt::format("{:.1f}", v)
         : size >= 0.01 ? fmt::format("{:.3f}", v)
                        : fmt::format("{:.2g}", v);
}

json::string text_of(std::string_view s) { return json::string(s.data(), s.size()); }

void append_distributions(std::string& out, const pool& p) {
  out += fmt::format("{:<20}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>12}\n", "", "p50", "p90", "p95", "p99",
                     "p99.9", "max", "count");
  for (std::size_t i = 0; i < distribution_count; ++i) {
    const histogram& h = p.of(figure{i});
    if (h.count() == 0) continue;
    out += fmt::format("{:<20}", figure_table[i].name);
    for (const auto& [name, q] : quantiles) out += fmt::format("{:>10}", brief(h.quantile(q)));
    out += fmt::format("{:>10}{:>12}\n", brief(h.max()), h.count());
  }
}

// Appends the most important numbers, and of the others those that are not zero.
void append_numbers(std::string& out, const pool& p) {
  const auto n = [&](figure f) { return brief(p.number(f)); };
  out += fmt::format(
      "\n{} s, {} requests: {} completed, {} cancelled, {} dropped, {} cut by the end, {} refused, {} "
      "failed\n",
      n(figure::duration_s), n(figure::requests), n(figure::completed), n(figure::cancelled),
      n(figure::dropped), n(figure::cut), n(figure::refused), n(figure::failed));
  out += fmt::format("output_throughput {} tok/s   request_throughput {}/s   request_goodput {}/s\n",
                     n(figure::output_throughput), n(figure::request_throughput), n(figure::request_goodput));
  out += fmt::format(
      "coalesced_frac {}   on_schedule_frac {}   gaps {}   repeats {}   text_mismatches {} of {}\n",
      n(figure::coalesced_frac), n(figure::on_schedule_frac), n(figure::gaps), n(figure::repeats),
      n(figure::text_mismatches), n(figure::texts_compared));
  for (const figure f :
       {figure::stall_count, figure::source_stall_count, figure::late_first_count, figure::burst_count,
        figure::tokens_differ, figure::disconnects, figure::cuts, figure::resumes_ok, figure::resumes_expired,
        figure::followers, figure::followers_failed, figure::slow_readers, figure::slow_closed,
        figure::leaked_jobs})
    if (p.number(f) != 0) out += fmt::format("{} {}: {}\n", entry(f).name, n(f), entry(f).what);
  if (p.number(figure::server_rss_bytes) > 0)
    out += fmt::format(
        "server: {:.1f} MB resident at most, {:+.1f} MB after the run, sampled to sent p99 {} ms\n",
        p.number(figure::server_rss_bytes) / 1e6, p.number(figure::server_rss_growth_bytes) / 1e6,
        n(figure::server_sent_p99_ms));
  out += fmt::format("this harness: {:.0f} % of its processor time, {} frames a read\n",
                     100 * p.number(figure::client_cpu), n(figure::frames_per_read));
}

}  // namespace

std::string bottleneck_of(const pool& p) {
  const double sched = p.of(figure::sched_lag_ms).quantile(0.99),
               loop = p.of(figure::loop_lag_ms).quantile(0.99);
  const double cpu = p.number(figure::client_cpu);
  if (sched > late_ms)
    return fmt::format("it sent its requests late: sched_lag_ms p99 is {} ms", brief(sched));
  if (loop > late_ms)
    return fmt::format("it came to its sockets late: loop_lag_ms p99 is {} ms", brief(loop));
  if (cpu > busy) return fmt::format("it used {:.0f} % of the processor time its threads had", 100 * cpu);
  return {};
}

std::string failure_of(const report& r) {
  const auto n = [&](figure f) { return r.all.number(f); };
  if (n(figure::completed) + n(figure::cancelled) > 0) return {};
  if (n(figure::output_tokens) > 0 && n(figure::errors) == 0) return {};
  if (n(figure::requests) == 0)
    return fmt::format("{}: nothing completed: no request ended in the measured time", r.url);
  std::string why = fmt::format(
      "{}: nothing completed: of {:.0f} requests {:.0f} failed, {:.0f} were refused, {:.0f} were dropped, "
      "{:.0f} were cut by the end of the run",
      r.url, n(figure::requests), n(figure::failed), n(figure::refused), n(figure::dropped), n(figure::cut));
  const auto& errors = r.all.error_texts();
  const auto most = std::ranges::max_element(errors, {}, [](const auto& e) { return e.second; });
  if (most != errors.end()) why += fmt::format("; {} times: {}", most->second, most->first);
  return why;
}

void report::judge(const std::vector<condition>& conditions) {
  for (const auto& c : conditions) {
    judgement j;
    j.asked = c;
    j.value = all.value(c.measure, c.statistic);
    j.holds = j.value && c.holds(*j.value);
    judged.push_back(std::move(j));
  }
}

bool report::good() const {
  return bottleneck.empty() && std::ranges::all_of(judged, [](const judgement& j) { return j.holds; });
}

std::string as_text(const report& r) {
  std::string out = fmt::format("{} ({})\n\n", r.url, r.protocol);
  append_distributions(out, r.all);
  append_numbers(out, r.all);
  if (!r.sampled_times) out += "no added_jitter_ms: this server does not say when it sampled a token\n";
  out += "\n";
  if (r.all.found().empty()) out += "found: nothing\n";
  for (const auto& [name, n] : r.all.found()) out += fmt::format("found: {} in {} streams\n", name, n);
  for (std::size_t i = 0; i < std::min<std::size_t>(r.all.findings().size(), 5); ++i) {
    const auto& f = r.all.findings()[i];
    out += fmt::format("  {} at {:.3f} s in stream {}: {}\n", f.name, f.at_ms / 1000, f.stream, f.what);
  }
  for (const auto& [text, n] : r.all.error_texts()) out += fmt::format("error, {} times: {}\n", n, text);
  for (const auto& j : r.judged)
    out += fmt::format("{} {} ({})\n", j.holds ? "holds:" : "BROKEN:", j.asked.text,
                       j.value ? brief(*j.value) : "not measured");
  if (r.interrupted) out += "interrupted: this is what was measured until then\n";
  if (!r.bottleneck.empty())
    out +=
        fmt::format("NOT A MEASUREMENT OF THE SERVER: this harness was the bottleneck; {}\n", r.bottleneck);
  return out;
}

json::object as_json(const report& r) {
  json::object figures;
  for (std::size_t i = 0; i < figure_count; ++i) {
    const auto& e = figure_table[i];
    if (i >= distribution_count) {
      figures[text_of(e.name)] = r.all.number(figure{i});
      continue;
    }
    const histogram& h = r.all.of(figure{i});
    json::object o{{"count", h.count()}};
    if (h.count()) {
      o["mean"] = h.mean();
      o["min"] = h.min();
      for (const auto& [name, q] : quantiles) o[name] = h.quantile(q);
      o["max"] = h.max();
    }
    if (e.number) o["all"] = r.all.number(figure{i});
    figures[text_of(e.name)] = std::move(o);
  }
  json::object found, errors;
  for (const auto& [name, n] : r.all.found()) found[name] = n;
  for (const auto& [text, n] : r.all.error_texts()) errors[text] = n;
  json::array findings, seconds, conditions;
  for (const auto& f : r.all.findings())
    findings.push_back(
        json::object{{"name", f.name}, {"stream", f.stream}, {"at_ms", f.at_ms}, {"what", f.what}});
  for (const auto& s : r.all.seconds())
    seconds.push_back(json::object{{"tokens", s.tokens},
                                   {"gap_p50_ms", s.gaps.quantile(0.5)},
                                   {"gap_p99_ms", s.gaps.quantile(0.99)},
                                   {"gap_max_ms", s.gaps.max()}});
  for (const auto& j : r.judged)
    conditions.push_back(json::object{{"condition", j.asked.text},
                                      {"value", j.value ? json::value(*j.value) : json::value()},
                                      {"holds", j.holds}});
  return {{"weir_load", report_version},
          {"url", r.url},
          {"protocol", r.protocol},
          {"options", r.options},
          {"interrupted", r.interrupted},
          {"good", r.good()},
          {"bottleneck", r.bottleneck},
          {"figures", figures},
          {"found", found},
          {"findings", findings},
          {"errors", errors},
          {"conditions", conditions},
          {"seconds", seconds}};
}

}  // namespace weir::load
