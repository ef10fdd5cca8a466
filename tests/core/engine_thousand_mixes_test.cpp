// A job's tokens, and the bits of the logits that they are drawn from, over a thousand random mixes on real
// layers: prompts with common beginnings, slices of every size, too few pages, cancels, and neighbours that
// fault; with pages of every type, which go to host memory and come back.
#include <random>

#include "core/engine.h"
#include "core/model/load.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tests/support/budget.h"
#include "tests/support/cuda_device.h"
#include "tests/support/data.h"
#include "tests/support/engine_rig.h"
#include "tests/support/plain_layer.h"
#include "tests/support/seed.h"
#include "tests/support/toy_directory.h"
#include "tests/support/watched_model.h"

namespace weir::tests::engine_thousand_mixes_test {

using namespace weir::core;

namespace {

constexpr std::uint64_t kinds = 40;
constexpr std::uint64_t faulty_kind = 7;  // its seed's third draw fails, beside others

struct lone_run {
  std::vector<token_id> ids;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> logits;
};

struct bench {
  std::function<std::unique_ptr<model>()> make;
  std::shared_ptr<const tokenizer> words;
  watched_model* watched = nullptr;

  std::unique_ptr<engine_rig> engine(engine_config c, loop_kind how = loop_kind::plain) {
    auto m = std::make_unique<watched_model>(make());
    watched = m.get();
    if (how == loop_kind::plain) return std::make_unique<engine_rig>(std::move(m), words, c);
    return std::make_unique<engine_rig>(std::make_unique<late_model>(std::move(m)), words, c);
  }
};

// Files, as users have them.
bench on_host(const std::string& device) {
  const auto dir = std::make_shared<temporary_dir>();
  write_toy_directory(dir->path());
  const auto make = [dir, backend = make_backend(device, 1).value()] {
    return std::move(load_model(dir->path().string(), backend).value().weights);
  };
  return {make, *load_tokenizer(dir->path().string())};
}

// Given widths in bf16, which a cuda device runs by its fused kernels.
bench of_widths(std::shared_ptr<const weir::kernels::backend> backend, std::uint32_t hidden,
                std::uint32_t inter, std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t head_dim,
                kv_choice kv = {}) {
  random_model shape = parse_random_model("tiny-110m:bf16", 4096).value();
  model_config& c = shape.config;
  c.shape.hidden = hidden;
  c.shape.vocab = 512;
  set_layers(c, 2, tests::plain_layer(inter, heads, kv_heads, head_dim));
  c.shape.layers[1].mixer.rule.window = 40;
  return {[=] { return std::move(make_random_model(shape, backend, 1, kv).value().weights); },
          make_numbered_tokenizer(512)};
}

// Prompts are cut from three texts at random, with tails of their own.
job of_kind(const engine_rig& rig, std::uint64_t kind) {
  std::mt19937 random(static_cast<unsigned>(kind) * 977 + 5);
  auto j = rig.job(kind, 1 + random() % 40, 1);
  j.prompt = shared_prompt(random, kind % 3, 200, 40, 256);
  j.sampling.temperature = kind % 3 == 0 ? 0.0f : 0.8f;
  if (kind % 4 == 1) j.sampling.repetition_penalty = 1.2f;
  j.ignore_eos = true;
  return j;
}

struct mix_counts {
  unsigned engines = 20;             // each goes through 50 mixes
  std::uint32_t most_rows = 100;     // of a slice
  loop_kind how = loop_kind::plain;  // of the mixes; a job alone always has the plain one
  std::uint32_t host_pages = 0;      // of the mixes; where there are some, the pool is as small as it can be
  std::uint64_t first_seed = 0;      // the first mix's number among the run's seeds
};

// Returns the counts of all engines together.
engine_counts check_mixes(bench at, mix_counts n) {
  auto c = small_config();
  std::vector<lone_run> alone;
  {
    const auto rig = at.engine(c);
    for (std::uint64_t k = 0; k < kinds; ++k) {
      auto j = of_kind(*rig, k);
      j.cache_salt = std::to_string(k);  // finds nothing that was computed before
      at.watched->seen.clear();
      alone.push_back({rig->solo(j), {}});
      alone.back().logits = at.watched->seen;
    }
    REQUIRE(at.watched->copies == 0);
    REQUIRE(rig->engine->counts().prefix_hits == 0);
  }

  std::unique_ptr<engine_rig> rig;
  engine_counts total;
  std::uint64_t copies = 0, compared = 0;
  const unsigned mixes = 50 * weir::tests::rounds(n.engines);
  for (unsigned mix = 0; mix < mixes; ++mix) {
    INFO("mix " << mix);
    std::mt19937 random(weir::tests::drawn_seed(n.first_seed + mix));
    if (mix % 50 == 0) {  // another engine, other slices, another pool; its cache lives on over 50 mixes
      c.max_batch = 2 + random() % 8;
      c.kv_pages = n.host_pages > 0 ? 5 : 6 + random() % 10;
      c.prefill_rows = 1 + random() % n.most_rows;
      c.host_pages = n.host_pages;
    }
    if (mix % 50 == 0) rig = at.engine(c, n.how);
    at.watched->seen.clear();
    at.watched->broken = [&](std::uint64_t s, std::uint32_t i) { return s == faulty_kind && i == 2; };

    std::map<std::uint64_t, std::shared_ptr<recording_sink>> sinks;
    for (int jobs = 0; jobs < 6; ++jobs) {
      const std::uint64_t kind = random() % kinds;
      if (sinks.contains(kind)) continue;
      sinks[kind] = rig->submit(of_kind(*rig, kind));
      for (auto steps = random() % 4; steps > 0 && !rig->engine->idle(); --steps) rig->step();
      if (random() % 6 == 0) rig->engine->cancel(rig->id(kind));
    }
    rig->run();
    for (const auto& [kind, sink] : sinks) {
      INFO("job " << kind);
      const auto ids = sink->ids();
      const auto& whole = alone[kind].ids;
      REQUIRE(sink->finishes == 1);
      REQUIRE(ids.size() <= whole.size());
      REQUIRE(std::equal(ids.begin(), ids.end(), whole.begin()));
      const bool cut =
          sink->end->reason == finish_reason::cancel || sink->end->reason == finish_reason::error;
      REQUIRE((cut || ids.size() == whole.size()));
    }
    for (const auto& [draw, digest] : at.watched->seen) {
      INFO("draw of job " << draw.first << " at " << draw.second);
      REQUIRE(alone[draw.first].logits.at(draw) == digest);
      ++compared;
    }
    if (mix % 50 == 49) {
      total += rig->engine->counts();
      copies += at.watched->copies;
      rig.reset();
    }
  }
  CHECK(compared > 50 * mixes);
  CHECK(total.prefix_hits > mixes);
  CHECK(copies > mixes / 2);
  if (n.host_pages > 0) CHECK(total.restored > 0);
  return total;
}

}  // namespace

TEST_CASE(
    "a thousand mixes over real layers: tokens and logits are those of a job alone, bit for bit, reference",
    "[long]") {
  check_mixes(on_host("reference"), {});
}

TEST_CASE(
    "200 mixes over real layers, steps overlapping: tokens and logits are those of a job alone, bit for "
    "bit") {
  check_mixes(on_host("reference"), {.engines = 4, .how = loop_kind::overlapped});
  check_mixes(on_host("cpu"), {.engines = 4, .how = loop_kind::overlapped});
}

TEST_CASE("a thousand mixes over real layers: tokens and logits are those of a job alone, bit for bit, cpu",
          "[long]") {
  check_mixes(on_host("cpu"), {});
}

TEST_CASE(
    "mixes over pages of every type that go to the host and come back: tokens and logits are those of a job "
    "alone, bit for bit",
    "[long]") {
  engine_counts total;
  std::uint64_t seeds = 0;  // each type has mixes of its own: one engine in twenty has no preemption
  for (const char* type : {"f32", "bf16", "fp8", "q8"}) {
    CAPTURE(type);
    const kv_choice kv = parse_kv_type(type).value();
    total += check_mixes(of_widths(make_backend("reference", 2).value(), 48, 64, 4, 1, 12, kv),
                         {.engines = 1, .host_pages = 24, .first_seed = seeds += 1000});
    total += check_mixes(of_widths(make_backend("cpu", 2).value(), 64, 96, 4, 2, 32, kv),
                         {.engines = 2, .host_pages = 24, .first_seed = seeds += 1000});
  }
  CHECK(total.preemptions > 0);
}

TEST_CASE(
    "200 mixes over real widths: tokens and logits are those of a job alone, bit for bit, cuda "
    "--deterministic") {
  const auto backend = cuda_device(true);
  if (!backend) return;
  check_mixes(of_widths(backend, 768, 2048, 12, 4, 64), {.engines = 4});
  check_mixes(of_widths(backend, 768, 2048, 12, 4, 64, weir::kernels::kv_type::fp8), {.engines = 4});
  const auto small = check_mixes(of_widths(backend, 768, 2048, 12, 4, 64, weir::kernels::kv_type::q8),
                                 {.engines = 4, .host_pages = 24});
  CHECK(small.preemptions > 0);
  check_mixes(of_widths(backend, 4096, 14336, 32, 8, 128), {.engines = 2, .most_rows = 700});
  const char* fault = backend->fault(backend->self);
  CHECK(std::string(fault ? fault : "") == "");
}

}  // namespace weir::tests::engine_thousand_mixes_test
