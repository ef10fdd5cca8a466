// A job's tokens, and the bits of the logits that they are drawn from, over a thousand random mixes on real
// layers: prompts with common beginnings, slices of every size, too few pages, cancels, and neighbours that
// fault.
#include <random>

#include "core/engine.h"
#include "core/model/load.h"
#include "core/text/tokenizer.h"
#include "tests/support/data.h"
#include "tests/support/engine_rig.h"
#include "tests/support/toy_directory.h"
#include "tests/support/watched_model.h"

using namespace weir::core;
using namespace weir::test;

namespace {

constexpr std::uint64_t kinds = 40;
constexpr std::uint64_t faulty_kind = 7;  // its seed's third draw fails, beside others

struct lone_run {
  std::vector<token_id> ids;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> logits;
};

struct bench {
  temporary_dir dir;
  watched_model* watched = nullptr;

  bench() { write_toy_directory(dir.path()); }

  std::unique_ptr<engine_rig> engine_on(const std::string& device, engine_config c) {
    auto loaded = load_model(dir.path().string(), make_backend(device, 1).value());
    REQUIRE(loaded.has_value());
    auto m = std::make_unique<watched_model>(std::move(loaded->weights));
    watched = m.get();
    return std::make_unique<engine_rig>(std::move(m), *load_tokenizer(dir.path().string()), c);
  }
};

// Prompts are cut from three texts at random, with tails of their own.
job of_kind(const engine_rig& rig, std::uint64_t kind) {
  std::mt19937 random(static_cast<unsigned>(kind) * 977 + 5);
  auto j = rig.job(kind, 1 + random() % 40, 1);
  j.prompt.clear();
  const std::uint64_t source = kind % 3;
  for (std::size_t i = 0, n = random() % 200; i < n; ++i)
    j.prompt.push_back(static_cast<token_id>((source * 101 + i * i + 3 * i) % 256));
  for (std::size_t i = 0, n = 1 + random() % 40; i < n; ++i)
    j.prompt.push_back(static_cast<token_id>(random() % 256));
  j.sampling.temperature = kind % 3 == 0 ? 0.0f : 0.8f;
  if (kind % 4 == 1) j.sampling.repetition_penalty = 1.2f;
  j.ignore_eos = true;
  return j;
}

void thousand_mixes(const std::string& device) {
  bench at;
  auto c = small_config();
  std::vector<lone_run> alone;
  {
    const auto rig = at.engine_on(device, c);
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
  for (unsigned seed = 0; seed < 1000; ++seed) {
    INFO("mix " << seed);
    std::mt19937 random(seed);
    if (seed % 50 ==
        0) {  // another engine, with other slices and another pool; its cache lives on over 50 mixes
      c.max_batch = 2 + random() % 8;
      c.kv_pages = 6 + random() % 10;
      c.prefill_rows = 1 + random() % 100;
    }
    if (seed % 50 == 0) rig = at.engine_on(device, c);
    at.watched->seen.clear();
    at.watched->broken = [&](std::uint64_t s, std::uint32_t i) { return s == faulty_kind && i == 2; };

    std::map<std::uint64_t, std::shared_ptr<recording_sink>> sinks;
    for (int n = 0; n < 6; ++n) {
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
    if (seed % 50 == 49) {
      total += rig->engine->counts();
      copies += at.watched->copies;
      rig.reset();
    }
  }
  CHECK(compared > 50000);
  CHECK(total.prefix_hits > 1000);
  CHECK(copies > 500);
}

}  // namespace

TEST_CASE(
    "a thousand mixes over real layers: tokens and logits are those of a job alone, bit for bit, reference") {
  thousand_mixes("reference");
}

TEST_CASE("a thousand mixes over real layers: tokens and logits are those of a job alone, bit for bit, cpu") {
  thousand_mixes("cpu");
}
