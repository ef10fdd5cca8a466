// pool.h — collects the measures of many streams: distributions, counts, and findings of faults.
//
// A stream is measured when it ends, and its record is not kept, so memory does not grow with the length of a
// run. Only the first few streams keep their frames, for the raster of the report.
//
// Thread safety: none; one owner. Each worker has a pool, and they are merged at the end.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "net/load/conditions.h"
#include "net/load/figures.h"
#include "net/load/histogram.h"
#include "net/load/measures.h"
#include "net/load/record.h"

namespace weir::load {

// A fault of a stream.
struct finding {
  std::string name;      // lost token, repeated token, stall, burst, late first token, text mismatch, error
  std::uint64_t stream = 0;
  double at_ms = 0;      // since the run began
  std::string what;
};

struct pool_options {
  micros from = 0;                     // end of the warm-up
  objectives slo;
  std::size_t raster_streams = 0;      // number of streams whose frames are kept
};

class pool {
 public:
  explicit pool(pool_options o);

  void add(const stream_record& r);
  // Adds a further reader of the same answer, which should have seen the same text. A reader that was
  // cut does not count.
  void add_follower(const stream_record& asked, const stream_record& followed);
  void merge(const pool& other);

  // The distribution and the number of a figure. Figures that do not come from streams are written with
  // these.
  histogram& of(figure f) { return distributions_[static_cast<std::size_t>(f)]; }
  const histogram& of(figure f) const { return distributions_[static_cast<std::size_t>(f)]; }
  double& number(figure f) { return numbers_[static_cast<std::size_t>(f)]; }
  double number(figure f) const { return numbers_[static_cast<std::size_t>(f)]; }

  // Compares an answer with earlier ones to the same prompt. `prompt`: number of the prompt.
  void compare_text(std::size_t prompt, const stream_record& r);

  // Computes late first tokens, shares and rates. To be called once, on the merged pool, after everything was
  // added.
  void conclude(double duration_s);

  struct second {
    std::uint64_t tokens = 0;
    histogram gaps;
  };
  struct line {
    std::uint64_t stream = 0;
    std::vector<frame> frames;
  };
  const std::vector<second>& seconds() const { return seconds_; }
  const std::vector<line>& raster() const { return raster_; }
  const std::vector<finding>& findings() const { return findings_; }
  const std::map<std::string, std::uint64_t>& found() const { return found_; }  // number of findings by name
  const std::map<std::string, std::uint64_t>& error_texts() const { return errors_; }

  // A figure's number, or one of its statistics (see condition::statistic); nullopt if it was not measured.
  std::optional<double> value(std::string_view name, std::string_view statistic = {}) const;

  static constexpr double late_first_ms = 200, late_first_medians = 5;
  static constexpr std::uint64_t burst_tokens = 8;

 private:
  void find(std::string name, std::uint64_t stream, double at_ms, std::string what);
  void count(const stream_record& r, const stream_measures& m);
  void judge(const stream_record& r, const stream_measures& m);
  void judge_order(const stream_record& r, std::string_view reader = {});
  void keep_time(const stream_record& r);
  void agree(std::size_t prompt, const std::string& text, std::uint64_t stream, double at_ms);

  pool_options o_;
  std::vector<histogram> distributions_;
  std::array<double, figure_count> numbers_{};
  std::uint64_t coalesced_ = 0, on_schedule_ = 0, shown_tokens_ = 0;
  std::vector<second> seconds_;
  std::vector<line> raster_;
  std::vector<finding> findings_;
  std::map<std::string, std::uint64_t> found_, errors_;
  struct first_token {
    double ttft;
    std::uint64_t stream;
    double at_ms;
  };
  std::vector<first_token> slowest_first_;
  std::map<std::size_t, std::string> texts_;  // [number of the prompt] the longest answer so far
};

}  // namespace weir::load
