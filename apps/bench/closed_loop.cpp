#include "apps/bench/closed_loop.h"

#include <algorithm>
#include <optional>

#include "core/text/tokenizer/tokenizer.h"

namespace weir::apps::bench {
namespace {

using core::time_point;

double ms(core::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

// The sums over all answers since the warm-up.
struct tally {
  loop_figures figures;
  time_point from{};
  core::objective slo;
  std::uint64_t tokens = 0;
  std::optional<time_point> now;     // once the end has come
  std::vector<std::uint64_t> ended;  // streams whose next request is to be sent
};

class listener final : public core::token_sink {
 public:
  // `stream`: number of the stream; nullopt: a job beside the streams, which is not counted.
  listener(tally& all, std::optional<std::uint64_t> stream, time_point asked)
      : all_(all), stream_(stream), asked_(asked) {}

  std::size_t write(std::span<const core::token> tokens) override {
    if (!stream_) return tokens.size();
    for (const core::token& t : tokens) {
      if (!first_) first_ = t.at;
      ++count_;
      if (t.at >= all_.from) {
        ++all_.tokens;
        if (last_) all_.figures.gaps_ms.add(ms(t.at - *last_));
        else all_.figures.first_ms.add(ms(t.at - asked_));
      }
      last_ = t.at;
    }
    return tokens.size();
  }
  void finish(const core::ending& how) override {
    all_.figures.failed |= how.reason == core::finish_reason::error;
    const bool answered = how.reason == core::finish_reason::length;
    if (stream_ && answered) all_.ended.push_back(*stream_);
    if (!stream_ || asked_ < all_.from || !all_.slo.set()) return;
    const bool in_time = first_ && *first_ - asked_ <= all_.slo.ttft;
    const bool late = first_ ? !in_time : all_.now && *all_.now - asked_ > all_.slo.ttft;
    if (!answered && !late) return;
    ++all_.figures.answers;
    if (answered && in_time && *last_ - *first_ <= all_.slo.tpot * (count_ - 1)) ++all_.figures.good;
  }
  bool abandoned() const noexcept override { return false; }

 private:
  tally& all_;
  std::optional<std::uint64_t> stream_;
  time_point asked_;
  std::optional<time_point> first_, last_;
  std::uint32_t count_ = 0;  // tokens
};

class loop {
 public:
  loop(core::engine& e, const core::tokenizer& words, const core::clock& time, const loop_options& o)
      : engine_(e), words_(words), time_(time), o_(o), ask_(questions_of(o)), beside_(beside_of(o)) {}

  loop_figures run() {
    using std::chrono::duration;
    const auto in = [start = time_.now()](double s) {
      return start + std::chrono::duration_cast<core::duration>(duration<double>(s));
    };
    all_.from = in(o_.warmup_s);
    all_.slo = o_.slo;
    const auto end = in(o_.warmup_s + o_.duration_s);
    for (std::uint64_t s = 0; s < o_.streams; ++s) submit(s);
    std::uint64_t sent_beside = 0;
    while (time_.now() < end && !engine_.fault()) {
      if (time_.now() >= all_.from && !measuring_from_) measuring_from_ = engine_.counts().steps;
      if (o_.beside_per_s > 0 && time_.now() >= in(static_cast<double>(sent_beside) / o_.beside_per_s))
        submit_beside(sent_beside++);
      engine_.step();
      for (const auto s : std::exchange(all_.ended, {})) submit(s);
    }
    all_.figures.steps = engine_.counts().steps - measuring_from_.value_or(0);
    all_.figures.tokens_per_s = static_cast<double>(all_.tokens) / o_.duration_s;
    all_.figures.failed |= engine_.fault().has_value();
    all_.now = time_.now();
    for (std::uint64_t id = 1; id <= jobs_; ++id) engine_.cancel({1, id});
    while (!engine_.idle()) engine_.step();
    return std::move(all_.figures);
  }

 private:
  static load::question_options beside_of(const loop_options& o) {
    auto q = questions_of(o);
    q.prompt_tokens = {o.beside_tokens, o.beside_tokens};
    q.max_tokens = {1, 1};
    q.seed += other_prompts;
    return q;
  }

  void submit(std::uint64_t stream) { submit(ask_.ask(asked_++), stream); }
  void submit_beside(std::uint64_t index) { submit(beside_.ask(index), std::nullopt); }

  void submit(const load::question& q, std::optional<std::uint64_t> stream) {
    core::job j;
    j.id = {1, ++jobs_};
    j.prompt = words_.encode(q.prompt, {});
    j.sampling.temperature = 0;
    j.max_tokens = q.max_tokens;
    j.ignore_eos = true;
    j.created = time_.now();
    j.sink = std::make_shared<listener>(all_, stream, j.created);
    engine_.submit(std::move(j));
  }

  core::engine& engine_;
  const core::tokenizer& words_;
  const core::clock& time_;
  const loop_options o_;
  const load::questions ask_, beside_;
  tally all_;
  std::uint64_t jobs_ = 0, asked_ = 0;
  std::optional<std::uint64_t> measuring_from_;  // number of the first step after the warm-up
};

}  // namespace

load::question_options questions_of(const loop_options& o) {
  load::question_options q;
  const auto around = [&](std::uint32_t n) {
    const auto off = static_cast<std::uint32_t>(o.spread * n);
    return load::token_range{std::max(1u, n - off), n + off};
  };
  q.prompt_tokens = around(o.prompt_tokens);
  q.max_tokens = around(o.max_tokens);
  q.seed = o.streams;  // so that no prompt is in the cache from another loop
  return q;
}

loop_figures run_closed_loop(core::engine& e, const core::tokenizer& words, const core::clock& time,
                             const loop_options& o) {
  return loop(e, words, time, o).run();
}

}  // namespace weir::apps::bench
