// `weir bench shares`: two models on one device, each alone and then both, by the weights that they have.
// Streams ask again once answered. The service is in this process, without sockets.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/json/array.hpp>
#include <deque>
#include <optional>
#include <utility>

#include "actors/open_model.h"
#include "apps/bench/bench.h"
#include "apps/local_service.h"
#include "apps/options.h"
#include "core/schedule/shares.h"
#include "net/load/histogram.h"
#include "net/load/questions.h"

namespace weir::apps::bench {
namespace {

using core::duration;
using core::time_point;

struct shares_options {
  core::engine_settings engine;
  std::vector<std::string> shares{"1:1", "3:1", "1:9"};
  std::vector<std::uint32_t> streams{1, 32};
  std::uint32_t prompt_tokens = 64, max_tokens = 256;
  double beside_per_s = 0;
  std::uint32_t beside_tokens = 2000;
  double warmup_s = 3, duration_s = 8;
  bool json = false;
};

constexpr std::uint32_t most_streams = 1024;
constexpr duration window = std::chrono::seconds(2), look_every = std::chrono::milliseconds(100);

duration seconds(double s) { return std::chrono::duration_cast<duration>(std::chrono::duration<double>(s)); }
double ms(duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

using weights = std::pair<double, double>;

core::result<std::vector<weights>> parse_shares(const std::vector<std::string>& texts) {
  std::vector<weights> out;
  for (const auto& text : texts) {
    const auto colon = text.find(':');
    const auto first = core::parse_weight(std::string_view(text).substr(0, colon));
    const auto second =
        colon == text.npos ? std::nullopt : core::parse_weight(std::string_view(text).substr(colon + 1));
    if (!first || !second) return core::bad_param("shares", "--shares {}: W:W is wanted, as 3:1", text);
    out.emplace_back(*first, *second);
  }
  return out;
}

// What one model did in a run.
struct tenant {
  std::string name;
  std::uint32_t streams = 0;
  double beside_per_s = 0;
  std::uint64_t tokens = 0;
  load::histogram gaps_ms = load::histogram();
  double least_part = 1, most_part = 0;  // of the device time, over windows of 2 s
};

// One run: models with their streams, for the time of the options.
class run_of {
 public:
  // `asked`: number of the next question; no two runs ask the same.
  run_of(local_service& local, const shares_options& o, std::vector<tenant> who, std::uint64_t& asked)
      : service_(local.get()), io_(local.io()), o_(o), who_(std::move(who)), asked_(asked), tick_(io_) {}

  core::result<std::vector<tenant>> measure() {
    const auto start = service_.now();
    from_ = start + seconds(o_.warmup_s);
    end_ = from_ + seconds(o_.duration_s);
    for (auto& t : who_)
      for (std::uint32_t i = 0; i < t.streams; ++i) ask(t, o_.prompt_tokens, o_.max_tokens, true);
    tick(start);
    const auto work = boost::asio::make_work_guard(io_);
    io_.restart();
    while (!over()) io_.run_one();
    if (failed_) return core::make_error(core::errc::internal, "a job failed; the figures mean nothing");
    return std::move(who_);
  }

 private:
  bool over() const { return ended_ && live_.empty(); }

  // Looks at the device's time, and sends the prompts beside the streams.
  void tick(time_point start) {
    const auto now = service_.now();
    if (now >= end_) {
      ended_ = true;
      for (const auto& s : live_) s->cancel();
      return;
    }
    for (auto& t : who_) {
      const auto due =
          static_cast<std::uint64_t>(t.beside_per_s * std::chrono::duration<double>(now - start).count());
      for (; sent_beside_ < due; ++sent_beside_) ask(t, o_.beside_tokens, 1, false);
    }
    if (now >= from_) look();
    tick_.expires_after(look_every);
    tick_.async_wait([this, start](boost::system::error_code ec) {
      if (!ec) tick(start);
    });
  }

  void look() {
    std::vector<std::uint64_t> used;
    const auto figures = service_.figures();
    for (const auto& t : who_)
      for (const auto& f : figures)
        if (f.name == t.name) used.push_back(f.engine.device_us);
    past_.push_back(used);
    if (past_.size() <= static_cast<std::size_t>(window / look_every)) return;
    double all = 0;
    for (std::size_t i = 0; i < used.size(); ++i) all += static_cast<double>(used[i] - past_.front()[i]);
    for (std::size_t i = 0; i < used.size(); ++i) {
      const double part = all > 0 ? static_cast<double>(used[i] - past_.front()[i]) / all : 0;
      who_[i].least_part = std::min(who_[i].least_part, part);
      who_[i].most_part = std::max(who_[i].most_part, part);
    }
    past_.pop_front();
  }

  void ask(tenant& t, std::uint32_t prompt_tokens, std::uint32_t max_tokens, bool stream) {
    load::question_options q;
    q.prompt_tokens = {prompt_tokens, prompt_tokens};
    const load::question what = load::questions(q).ask(asked_++);
    actors::request r;
    r.model = t.name;
    r.input = what.prompt;
    r.max_tokens = max_tokens;
    r.ignore_eos = true;
    r.sampling.temperature = 0;
    auto slot = std::make_shared<std::shared_ptr<actors::job_stream>>();
    const auto changed = [this, &t, slot, prompt_tokens, max_tokens, stream] {
      if (!*slot) return;
      using phase = actors::job_stream::phase;
      const auto now = (*slot)->state();
      if (now == phase::pending || now == phase::running) return;
      const auto s = std::exchange(*slot, nullptr);
      std::erase(live_, s);
      failed_ |= now == phase::refused || s->ended().reason == core::finish_reason::error;
      if (stream) note(t, *s);
      if (stream && !ended_ && !failed_) ask(t, prompt_tokens, max_tokens, true);
      if (failed_) ended_ = true;
    };
    *slot = service_.submit(std::move(r), io_.get_executor(), changed);
    live_.push_back(*slot);
  }

  void note(tenant& t, const actors::job_stream& s) {
    for (std::uint32_t i = 0; i < s.published(); ++i) {
      const auto at = s.sampled_at(i);
      if (at < from_ || at >= end_) continue;
      ++t.tokens;
      if (i > 0) t.gaps_ms.add(ms(at - s.sampled_at(i - 1)));
    }
  }

  actors::service& service_;
  boost::asio::io_context& io_;
  const shares_options& o_;
  std::vector<tenant> who_;
  std::uint64_t& asked_;
  boost::asio::steady_timer tick_;
  time_point from_{}, end_{};
  std::deque<std::vector<std::uint64_t>> past_;
  std::vector<std::shared_ptr<actors::job_stream>> live_;
  std::uint64_t sent_beside_ = 0;
  bool ended_ = false, failed_ = false;
};

core::result<> set_share(local_service& local, const std::string& name, double weight) {
  std::optional<actors::order_replies::answer> said;
  const auto hear = [&](actors::order_replies::answer a) { said = std::move(a); };
  const auto refused = [&](actors::order_replies::answer a) {
    if (!a) said = std::move(a);
  };
  local.get().set_terms({name, weight}, local.io().get_executor(), {refused, hear});
  auto work = boost::asio::make_work_guard(local.io());
  local.io().restart();
  while (!said) local.io().run_one();
  if (!*said) return said->error().fault;
  return {};
}

boost::json::object row_of(const tenant& t, const shares_options& o, const std::string& shares,
                           std::uint32_t streams, double alone) {
  const double rate = static_cast<double>(t.tokens) / o.duration_s;
  boost::json::object row{{"shares", shares},
                          {"model", t.name},
                          {"streams", t.streams},
                          {"streams_of_second", streams},
                          {"tokens_per_s", rate},
                          {"gap_p50_ms", t.gaps_ms.quantile(0.5)},
                          {"gap_p99_ms", t.gaps_ms.quantile(0.99)},
                          {"gap_max_ms", t.gaps_ms.quantile(1)}};
  if (alone <= 0) return row;
  row["rate_over_alone"] = rate / alone;
  row["least_part"] = t.least_part;
  row["most_part"] = t.most_part;
  return row;
}

// Of NAME=SOURCE or SOURCE.
std::string name_of(const std::string& model) {
  const auto equals = model.find('=');
  return equals == model.npos ? actors::name_of_source(model) : model.substr(0, equals);
}

core::result<boost::json::object> measure(const shares_options& o) {
  const auto all = parse_shares(o.shares);
  if (!all) return all.error();
  if (o.engine.model.size() != 2) return core::bad_param("model", "--model: two models are wanted");
  local_service local(o.engine, most_streams + 64);
  if (!local.ok()) return core::make_error(core::errc::internal, "the models were not loaded");
  boost::json::array rows;
  std::uint64_t asked = 0;
  for (const auto streams : o.streams) {
    const tenant first{name_of(o.engine.model[0]), 1, o.beside_per_s},
        second{name_of(o.engine.model[1]), streams};
    double alone[2];
    for (std::size_t i = 0; i < 2; ++i) {
      auto one = run_of(local, o, {i == 0 ? first : second}, asked).measure();
      if (!one) return one.error();
      alone[i] = static_cast<double>(one->front().tokens) / o.duration_s;
      rows.push_back(row_of(one->front(), o, "alone", streams, 0));
    }
    for (std::size_t s = 0; s < all->size(); ++s) {
      const auto& [a, b] = (*all)[s];
      if (auto ok = set_share(local, first.name, a); !ok) return ok.error();
      if (auto ok = set_share(local, second.name, b); !ok) return ok.error();
      auto both = run_of(local, o, {first, second}, asked).measure();
      if (!both) return both.error();
      double sum = 0;
      for (std::size_t i = 0; i < 2; ++i) {
        rows.push_back(row_of((*both)[i], o, o.shares[s], streams, alone[i]));
        sum += rows.back().as_object().at("rate_over_alone").as_double();
      }
      rows.back().as_object()["sum_over_alone"] = sum;
    }
  }
  return boost::json::object{{"benchmark", "shares"}, {"device", o.engine.device}, {"rows", std::move(rows)}};
}

int run(const shares_options& o) { return report(measure(o), o.json); }

}  // namespace

command add_shares(CLI::App& app) {
  auto o = std::make_shared<shares_options>();
  add_settings(app, o->engine);
  app.add_option("--shares", o->shares, "weights of the two models, one run after the other")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--streams", o->streams,
                 "streams of the second model, one run after the other; the first has one")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(1u, most_streams));
  app.add_option("--prompt-tokens", o->prompt_tokens, "of each question; no two are alike")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--max-tokens", o->max_tokens, "of each answer")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--beside-rate", o->beside_per_s,
                 "long prompts a second at the first model, beside its stream")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e4));
  app.add_option("--beside-tokens", o->beside_tokens, "of each of those")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--warmup", o->warmup_s, "time that is not measured, in s")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option("--duration", o->duration_s, "measured time of each run, in s")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  app.add_flag("--json", o->json, "one JSON object instead of a table");
  return [o] { return run(*o); };
}

}  // namespace weir::apps::bench
