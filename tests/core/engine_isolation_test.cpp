// P1 on the cpu backend, to the last bit: whatever runs beside a job, however its prompt is cut, with one
// thread or two, every row of logits that it draws from is the one that it gets alone.
#include <cmath>
#include <cstring>
#include <random>

#include "core/model/load.h"
#include "tests/support/budget.h"
#include "tests/support/engine_rig.h"
#include "tests/support/plain_layer.h"
#include "tests/support/seed.h"

namespace weir::tests::engine_isolation_test {

using namespace weir::core;

namespace {

constexpr std::uint32_t vocab = 61;
constexpr std::size_t kinds = 48;
constexpr int mixes = 125;  // for each type of weights and number of threads: 500 in all

// A model whose tokens depend on every bit of the logits, and on what sampling makes of them: two streams of
// tokens are equal only where the logits were, bit for bit.
class bit_reader final : public model {
 public:
  explicit bit_reader(std::unique_ptr<model> of) : of_(std::move(of)) {}

  const model_info& info() const noexcept override { return of_->info(); }
  result<void> allocate_pages(std::uint32_t count) override { return of_->allocate_pages(count); }
  result<void> forward(const batch& b) override { return of_->forward(b); }
  const kernels::draw_logprobs& logprobs_of(std::uint32_t i) const override { return of_->logprobs_of(i); }
  std::span<const float> logits(std::uint32_t row) const override { return of_->logits(row); }

  result<void> sample(std::span<const draw> draws, std::span<drawn> out) override {
    auto done = of_->sample(draws, out);
    for (std::size_t i = 0; i < draws.size(); ++i) {
      std::uint64_t hash = static_cast<std::uint64_t>(out[i].id);
      for (const float x : logits(draws[i].logits_row)) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &x, sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
        hash ^= hash >> 29;
      }
      out[i].id = static_cast<token_id>(hash % vocab);
    }
    return done;
  }

 private:
  std::unique_ptr<model> of_;
};

// Widths that fill neither tiles nor panels, deep enough for several slices of k.
std::unique_ptr<model> small_model(kernels::dtype type, std::shared_ptr<const kernels::backend> on) {
  random_model m;
  m.type = type;
  m.config.architecture = "LlamaForCausalLM";
  m.config.shape.vocab = vocab;
  m.config.context = 512;
  m.config.shape.hidden = 290;
  m.config.shape.norm_eps = 1e-5f;
  set_layers(m.config, 2, tests::plain_layer(334, 5, 1, 58));
  auto made = make_random_model(m, std::move(on));
  REQUIRE(made.has_value());
  return std::make_unique<bit_reader>(std::move(made->weights));
}

std::unique_ptr<engine_rig> make_rig(kernels::dtype type, std::shared_ptr<const kernels::backend> on,
                                     std::mt19937& random) {
  engine_config c;
  c.max_batch = 1 + random() % 64;
  c.kv_pages = 256;
  c.prefill_rows = 1 + random() % 200;
  return std::make_unique<engine_rig>(small_model(type, std::move(on)), letters(vocab), c);
}

job of_kind(const engine_rig& rig, std::size_t kind) {
  auto j = rig.job(kind, 1 + static_cast<std::uint32_t>(kind * 7 % 8), 1 + kind * kind * 13 % 50);
  j.sampling.temperature = kind % 2 == 0 ? 0.0f : 0.9f;
  if (kind % 3 == 1) j.sampling.top_p = 0.8f;
  if (kind % 5 == 2) j.sampling.repetition_penalty = 1.3f;
  j.ignore_eos = true;
  return j;
}

using streams = std::vector<std::vector<token_id>>;

streams all_alone(kernels::dtype type) {
  engine_config c;
  c.max_batch = 64;
  c.kv_pages = 16;
  engine_rig rig(small_model(type, kernels::cpu_backend(1)), letters(vocab), c);
  streams alone;
  for (std::size_t kind = 0; kind < kinds; ++kind) alone.push_back(rig.solo(of_kind(rig, kind)));
  return alone;
}

// Runs 1 to 64 jobs that join while others run. Returns the kinds whose tokens differ from a run alone.
std::vector<std::size_t> run_mix(engine_rig& rig, const streams& alone, std::mt19937& random) {
  std::vector<std::pair<std::size_t, std::shared_ptr<recording_sink>>> jobs;
  for (std::size_t n = 1 + random() % 64; n > 0; --n) {
    const std::size_t kind = random() % kinds;
    auto j = of_kind(rig, kind);
    j.id = rig.id(1000 + n);
    jobs.emplace_back(kind, rig.submit(std::move(j)));
    for (auto steps = random() % 6; steps > 4; --steps) rig.step();
  }
  rig.run();
  std::vector<std::size_t> different;
  for (const auto& [kind, sink] : jobs)
    if (sink->ids() != alone[kind]) different.push_back(kind);
  return different;
}

}  // namespace

TEST_CASE("500 mixes of jobs on the cpu: each job's logits are, bit for bit, those it gets alone", "[long]") {
  std::mt19937 random(tests::drawn_seed(5));
  for (const auto type : {kernels::dtype::f32, kernels::dtype::bf16}) {
    const streams alone = all_alone(type);
    for (const unsigned threads : {1u, 2u}) {
      std::unique_ptr<engine_rig> rig;
      for (int m = 0; m < static_cast<int>(tests::rounds(mixes)); ++m) {
        if (m % 5 == 0) rig = make_rig(type, kernels::cpu_backend(threads), random);
        CAPTURE(kernels::name(type), threads, m);
        REQUIRE(run_mix(*rig, alone, random) == std::vector<std::size_t>());
      }
    }
  }
}

TEST_CASE("the mixes see one changed bit in the products of rows that have neighbours") {
  static const auto real = kernels::cpu_backend(1);
  auto spoiled = std::make_shared<kernels::backend>(*real);
  spoiled->do_linear = [](void* self, const kernels::linear& op) {
    real->do_linear(self, op);
    if (op.rows > 1 && op.w.rows == vocab) *op.out = std::nextafter(*op.out, 1e9f);
  };
  std::mt19937 random(6);
  engine_config c;
  c.max_batch = 64;
  c.kv_pages = 256;
  engine_rig rig(small_model(kernels::dtype::f32, spoiled), letters(vocab), c);
  CHECK(run_mix(rig, all_alone(kernels::dtype::f32), random).size() > 0);
}

}  // namespace weir::tests::engine_isolation_test
