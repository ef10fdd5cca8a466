// step.cpp — the time of an engine's step beside the model's own: pages, names, scheduling, delivery.
//
//   bench_engine_step [sequences]
//
// The model computes nothing and draws nothing, so that what is left is the engine. Each line has the median
// of the steps' times and the time below which nine in ten steps stay.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "core/engine.h"
#include "core/text/tokenizer/tokenizer.h"

using namespace weir::core;

namespace {

class no_model final : public model {
 public:
  explicit no_model(bool ahead) {
    info_.runs_ahead = ahead;
    info_.vocab_size = 1000;
    info_.context = 1u << 20;
  }
  const model_info& info() const noexcept override { return info_; }
  result<void> allocate_pages(std::uint32_t) override { return {}; }
  result<void> forward(const batch&) override { return {}; }
  result<void> sample(std::span<const draw> draws, std::span<drawn> out) override {
    for (std::size_t i = 0; i < draws.size(); ++i)
      out[i].id = static_cast<token_id>((draws[i].seed + draws[i].position * 7) % 1000);
    return {};
  }
  result<void> begin_draws(std::span<const draw> draws) override {
    begun_.resize(draws.size());
    return sample(draws, begun_);
  }
  result<void> collect(std::span<drawn> out) override {
    std::copy(begun_.begin(), begun_.end(), out.begin());
    return {};
  }
  const weir::kernels::draw_logprobs& logprobs_of(std::uint32_t) const override { return none_; }
  std::span<const float> logits(std::uint32_t) const override { return {}; }

 private:
  model_info info_;
  std::vector<drawn> begun_;
  weir::kernels::draw_logprobs none_;  // no job of this program asks
};

class open_sink final : public token_sink {
 public:
  std::size_t write(std::span<const token> t) override { return t.size(); }
  void finish(const ending&) override {}
  bool abandoned() const noexcept override { return false; }
};

class bench {
 public:
  bench(std::uint32_t sequences, std::uint32_t pages, bool ahead = false)
      : engine_(std::make_unique<no_model>(ahead), token_table(*make_numbered_tokenizer(1000)),
                config(sequences, pages), time_) {}

  void submit(std::uint64_t n, std::size_t prompt, std::uint64_t text, std::uint32_t max_tokens) {
    job j;
    j.id = {1, ++jobs_};
    std::vector<token_id> ids;
    for (std::size_t i = 0; i < prompt; ++i)
      ids.push_back(static_cast<token_id>((text * 7919 + i * i) % 1000));
    j.prompt = std::move(ids);
    j.max_tokens = max_tokens;
    j.sampling.seed = n;
    j.sink = sink_;
    engine_.submit(std::move(j));
  }

  // The times of `count` steps, in µs; `between` is called before each step.
  std::vector<double> steps(int count, const std::function<void(int)>& between = {}) {
    std::vector<double> took;
    for (int i = 0; i < count; ++i) {
      if (between) between(i);
      const auto start = std::chrono::steady_clock::now();
      engine_.step();
      took.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    return took;
  }

  const engine& of() const { return engine_; }

 private:
  static engine_config config(std::uint32_t sequences, std::uint32_t pages) {
    engine_config c;
    c.max_batch = sequences;
    c.kv_pages = pages;
    c.prefill_rows = 2048;
    return c;
  }
  system_clock time_;
  std::shared_ptr<open_sink> sink_ = std::make_shared<open_sink>();
  engine engine_;
  std::uint64_t jobs_ = 0;
};

void print(const char* what, std::vector<double> took) {
  std::sort(took.begin(), took.end());
  std::printf("%-64s %8.2f %8.2f\n", what, took[took.size() / 2], took[took.size() * 9 / 10]);
}

}  // namespace

int main(int argc, char** argv) {
  const auto sequences = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 256);
  std::printf("%u sequences, us a step%41s %8s\n\n", sequences, "p50", "p90");
  {
    bench b(sequences, sequences * 64);
    for (std::uint32_t n = 0; n < sequences; ++n) b.submit(n, 100 + n % 64, n, 3000);
    b.steps(200);
    print("decoding, a page named and another taken every 64 tokens", b.steps(2000));
  }
  {
    bench b(sequences, sequences * 64, true);
    for (std::uint32_t n = 0; n < sequences; ++n) b.submit(n, 100 + n % 64, n, 3000);
    b.steps(200);
    print("the same, steps overlapping", b.steps(2000));
  }
  {
    // As beside a server: a step's memory has left the core's own caches when the next one begins.
    bench b(sequences, sequences * 64, true);
    for (std::uint32_t n = 0; n < sequences; ++n) b.submit(n, 100 + n % 64, n, 3000);
    b.steps(200);
    std::vector<std::uint64_t> other((30u << 20) / sizeof(std::uint64_t));
    print("the same, 30 MB of other memory written between steps", b.steps(500, [&](int) {
            for (std::size_t i = 0; i < other.size(); i += 8) ++other[i];
          }));
  }
  {
    bench b(sequences, sequences * 64);
    for (std::uint32_t n = 0; n < sequences - 1; ++n) b.submit(n, 100, n, 3000);
    b.steps(200);
    b.submit(9999, 1536, 1, 1);
    b.steps(10);
    print("the same, and a job of 1,536 cached tokens comes and goes",
          b.steps(1000, [&](int i) { b.submit(10000u + unsigned(i), 1536, 1, 1); }));
  }
  {
    bench b(sequences, sequences * 6);
    for (std::uint32_t n = 0; n < sequences * 2; ++n) b.submit(n, 200, n, 3000);
    b.steps(300);
    const auto before = b.of().counts().preemptions;
    print("a pool for a third of them: preempted, waiting, entering", b.steps(2000));
    std::printf("  %.2f preemptions a step\n", double(b.of().counts().preemptions - before) / 2000);
  }
  {
    bench b(sequences, 64);
    for (std::uint32_t n = 0; n < sequences; ++n) b.submit(n, 4000, n, 10);
    b.steps(20);
    print("long prompts, one at a time, the others without room", b.steps(1000));
  }
}
