// The hot path allocates nothing: a step of running sequences, stop strings and penalties included.
#include <atomic>
#include <cstdlib>
#include <new>
#include <numeric>

#include "core/engine.h"
#include "core/schedule/prompt_budget.h"
#include "tests/support/engine_rig.h"

namespace {
std::atomic<std::uint64_t> allocations{0};
}

[[gnu::noinline]] void* operator new(std::size_t n) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(n > 0 ? n : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(n > 0 ? n : 1);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }

namespace weir::tests::engine_allocation_test {

using namespace weir::core;

namespace {

// Takes what it is given, two tokens at a time, and keeps none of it.
class counting_sink final : public token_sink {
 public:
  std::uint64_t tokens = 0, with_logprobs = 0;
  std::size_t write(std::span<const token> t) override {
    const std::size_t n = std::min<std::size_t>(t.size(), 2);
    tokens += n;
    return n;
  }
  std::size_t write_with_logprobs(std::span<const token> t, std::span<const draw_logprobs>) override {
    with_logprobs += std::min<std::size_t>(t.size(), 2);
    return write(t);
  }
  void finish(const ending&) override {}
  bool abandoned() const noexcept override { return false; }
};

// Logits that do not change, and the sampler as every model calls it.
class steady_model final : public model {
 public:
  steady_model() : logits_(1000), scratch_(1000) {
    info_.vocab_size = 1000;
    info_.context = 100000;
    for (std::size_t i = 0; i < logits_.size(); ++i) logits_[i] = static_cast<float>(i * 7919 % 1000) / 100;
  }
  model_info& change_info() { return info_; }
  const model_info& info() const noexcept override { return info_; }
  result<void> allocate_pages(std::uint32_t) override { return {}; }
  result<void> forward(const batch&) override { return {}; }
  result<void> begin_draws(std::span<const draw> draws) override {
    begun_.assign(draws.size(), {});
    return sample(draws, begun_);
  }
  result<void> collect(std::span<drawn> out) override {
    std::copy(begun_.begin(), begun_.end(), out.begin());
    return {};
  }
  result<void> sample(std::span<const draw> draws, std::span<drawn> out) override {
    for (std::size_t i = 0; i < draws.size(); ++i) {
      out[i].id = draws[i].from->pick(logits_, draws[i].position, scratch_).value();
      if (draws[i].top_logprobs < 0) continue;
      const auto top = static_cast<std::uint32_t>(draws[i].top_logprobs);
      compute_logprobs(logits_, out[i].id, top, scratch_, logprobs_[i]);
    }
    return {};
  }
  const draw_logprobs& logprobs_of(std::uint32_t i) const override { return logprobs_[i]; }
  std::span<const float> logits(std::uint32_t) const override { return logits_; }

 private:
  model_info info_;
  std::vector<float> logits_;
  sample_scratch scratch_;
  std::vector<drawn> begun_;
  std::vector<draw_logprobs> logprobs_ = std::vector<draw_logprobs>(64);
};

void check_steps(bool ahead) {
  manual_clock clock;
  auto c = small_config();
  c.kv_pages = 4096;
  auto m = std::make_unique<steady_model>();
  m->change_info().runs_ahead = ahead;
  engine e(std::move(m), token_table(*letters(1000)), c, clock);
  auto sink = std::make_shared<counting_sink>();
  for (std::uint64_t n = 0; n < 32; ++n) {
    job j;
    j.id = {1, n};
    j.prompt = {1, 2, 3};
    j.max_tokens = 3000;
    j.sampling.seed = n;
    if (n % 2 == 0) j.sampling.top_p = 0.9f;
    if (n % 3 == 0) j.sampling.repetition_penalty = 1.1f;
    if (n % 4 == 0) j.sampling.top_k = 50;
    if (n % 5 == 0) j.stop = {"abcabcabc", "zyx", "qqqqq"};
    if (n % 3 == 1) j.top_logprobs = n % 21;
    j.sink = sink;
    e.submit(std::move(j));
  }
  for (int i = 0; i < 10; ++i) e.step();
  const auto before = allocations.load();
  const auto tokens = sink->tokens;
  for (int i = 0; i < 1000; ++i) {
    clock.advance(std::chrono::milliseconds(1));
    e.step();
  }
  CHECK(allocations.load() == before);
  CHECK(sink->tokens > tokens + 20000);
  CHECK(sink->with_logprobs > 5000);
}

// How often an engine allocates while it takes 64 jobs and computes their first step.
std::uint64_t allocations_to_begin(const job& each) {
  manual_clock clock;
  auto c = small_config();
  c.kv_pages = 4096;
  c.max_batch = 64;
  auto m = std::make_unique<steady_model>();
  m->change_info().stop_ids = {5, 17};
  engine e(std::move(m), token_table(*letters(1000)), c, clock);
  std::vector<job> jobs(64, each);
  for (std::uint64_t n = 0; n < jobs.size(); ++n) {
    jobs[n].id = {1, n};
    jobs[n].sampling.choice = static_cast<std::uint32_t>(n);
    jobs[n].sink = std::make_shared<counting_sink>();
  }
  const auto before = allocations.load();
  for (job& j : jobs) e.submit(std::move(j));
  e.step();
  const auto after = allocations.load();
  CHECK(e.counts().decoding + e.counts().prefilling == 64);
  return after - before;
}

}  // namespace

TEST_CASE("what 64 choices of a request share is neither copied nor made ready by their engine") {
  job plain;
  plain.prompt = std::vector<token_id>(40, 7);
  plain.max_tokens = 20;
  plain.min_tokens = 5;
  plain.sampling.repetition_penalty = 1.2f;
  plain.prompt_ids = {7};
  plain.sampling.logit_bias = {{1, 1.0f}};
  plain.stop = {"qqq"};
  plain.stop_token_ids = {5, 17};
  job full = plain;
  std::vector<token_id> ids(900);
  std::iota(ids.begin(), ids.end(), 1);
  std::vector<std::pair<token_id, float>> biases;
  for (const token_id id : ids) biases.emplace_back(id, -1.0f);
  std::vector<std::string> strings;
  for (int i = 0; i < 64; ++i) strings.push_back(std::string(1000, '#') + std::to_string(i));
  full.prompt_ids = ids;
  full.stop_token_ids = ids;
  full.sampling.logit_bias = biases;
  full.stop = strings;
  CHECK(allocations_to_begin(full) == allocations_to_begin(plain));
}

TEST_CASE("a step of running sequences allocates nothing") { check_steps(false); }

TEST_CASE("a step that is begun ahead allocates nothing") { check_steps(true); }

TEST_CASE("the budget of an objective allocates nothing") {
  using namespace std::chrono_literals;
  prompt_budget budget({.rows = 2048, .slo = {1000ms, 50ms}});
  const std::vector<prompt_demand> waiting(200, {300, 400ms});
  const auto before = allocations.load();
  std::uint64_t rows = 0;
  for (int i = 0; i < 1000; ++i) {
    rows += budget.rows(64, waiting);
    budget.observe(64, i % 3 ? budget.granted() : 0, 8ms + i % 3 * 10ms);
  }
  CHECK(allocations.load() == before);
  CHECK(rows > 1000);
}

}  // namespace weir::tests::engine_allocation_test
