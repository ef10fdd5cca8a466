// An engine on a cuda device whose pool gives way and grows while it steps: tokens from recorded graphs are
// those of an undisturbed engine, and the device's free bytes are those of the pages. Skipped, saying so,
// where there is no device.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>
#include <map>

#include "core/model/load.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tests/support/budget.h"
#include "tests/support/cuda_device.h"
#include "tests/support/engine_rig.h"
#include "tests/support/plain_layer.h"
#include "tests/support/pool_mover.h"
#include "tests/support/seed.h"

namespace weir::tests::pool_cuda_test {

using namespace weir::core;

namespace {

using backend_ptr = std::shared_ptr<const kernels::backend>;

constexpr std::uint64_t kinds = 48;
constexpr std::uint32_t longest = 24 * page_tokens, most_pages = 5 * 128 + 16;

backend_ptr device(bool deterministic) {
  const auto b = tests::cuda_device(deterministic);
  if (!b || b->do_reserve) return b;
  std::cerr << "skipped: " << b->name << " has no virtual memory management\n";
  return nullptr;
}

std::unique_ptr<model> wide_model(const backend_ptr& on) {
  random_model shape = parse_random_model("tiny-110m:bf16", 4096).value();
  shape.config.shape.hidden = 1024;
  shape.config.shape.vocab = 512;
  set_layers(shape.config, 2, tests::plain_layer(2048, 16, 8, 128));
  return std::move(make_random_model(shape, on, 1).value().weights);
}

engine_config config_of(const model& m, std::uint32_t pages, std::uint32_t host) {
  engine_config c;
  c.max_batch = 32;
  c.kv_pages = pages;
  c.host_pages = host;
  c.max_seq_len = longest;
  c.prefill_rows = m.info().prompt_rows;
  return c;
}

// An engine whose graphs are recorded.
std::unique_ptr<engine_rig> make(const backend_ptr& on, std::uint32_t pages, std::uint32_t host) {
  auto m = wide_model(on);
  const auto c = config_of(*m, pages, host);
  m->allocate_pages(pages).value();
  m->warm_up(c.max_batch, c.prefill_rows).value();
  return std::make_unique<engine_rig>(std::move(m), make_numbered_tokenizer(512), c, engine_rig::as_it_is{});
}

job of_kind(const engine_rig& rig, std::uint64_t kind) {
  std::mt19937 random(static_cast<unsigned>(kind - kind % 3) * 977 + 5);
  auto j = rig.job(kind, 20 + random() % 200, 1);
  const std::uint64_t source = random() % 4;
  j.prompt = shared_prompt(random, source, 600, 500, 512);
  j.sampling.temperature = kind % 5 == 0 ? 0.0f : 0.8f;
  j.ignore_eos = true;
  return j;
}

std::uint64_t free_of(const backend_ptr& b) { return b->free_bytes(b->self); }

bool near(std::uint64_t a, std::uint64_t b) { return std::abs(static_cast<std::int64_t>(a - b)) <= 6 << 20; }

}  // namespace

TEST_CASE("cuda: a pool moves while an engine steps, and tokens and bytes are what they should be") {
  const auto on = device(true);
  if (!on) return;
  std::vector<std::vector<token_id>> alone;
  {
    const auto rig = make(on, most_pages, 0);
    for (std::uint64_t k = 0; k < kinds; ++k) {
      auto j = of_kind(*rig, k);
      j.cache_salt = std::to_string(k);
      alone.push_back(rig->solo(std::move(j)));
    }
  }
  for (const std::uint32_t host : {0u, 200u}) {
    CAPTURE(host);
    const auto rig = make(on, most_pages, host);
    engine& e = *rig->engine;
    REQUIRE(e.page_step() == 128);
    REQUIRE(e.info().runs_ahead);
    const std::uint64_t full = free_of(on), page = e.info().page_bytes;
    pool_mover mover(e, longest / page_tokens, weir::tests::drawn_seed(20 + host));
    mover.beside = true;
    mover.changed = [&] {
      const auto held = e.info().pool.held(static_cast<std::uint32_t>(e.pages()), most_pages);
      CHECK(near(free_of(on), full + (most_pages - held) * page));
    };
    std::mt19937_64 random(weir::tests::drawn_seed(30 + host));
    for (unsigned round = 0; round < weir::tests::rounds(6); ++round) {
      std::map<std::uint64_t, std::shared_ptr<recording_sink>> sinks;
      for (std::uint64_t k = 0; k < kinds; ++k) {
        const std::uint64_t kind = random() % kinds;
        if (!sinks.contains(kind)) sinks[kind] = rig->submit(of_kind(*rig, kind));
        for (auto steps = random() % 8; steps > 0; --steps) {
          mover.move();
          rig->step();
        }
      }
      while (!e.idle()) {
        mover.move();
        rig->step();
      }
      for (const auto& [kind, sink] : sinks) {
        INFO("job " << kind);
        REQUIRE(sink->ids() == alone[kind]);
      }
    }
    mover.finish();
    std::cerr << "pool: " << mover.shrunk << " times smaller, " << mover.grown << " times larger, "
              << e.counts().moved_pages << " pages moved, " << e.counts().left_pages << " left\n";
    CHECK((mover.shrunk > 0 && mover.grown > 0));
    CHECK(e.counts().moved_pages > 0);
    CHECK(e.counts().left_pages > 0);
    CHECK((e.counts().restored > 0) == (host > 0));
    REQUIRE(on->fault(on->self) == nullptr);
  }
}

TEST_CASE(
    "cuda: a pool takes the bytes of its pages, whether it can change or not, and keeps its count asleep") {
  const auto on = device(false);
  if (!on) return;
  const auto m = wide_model(on);
  m->allocate_pages(1).value();
  const std::uint64_t page = m->info().page_bytes, empty = free_of(on);
  for (const std::uint32_t pages : {100u, 256u, 263u, 272u, 1024u}) {
    CAPTURE(pages);
    m->allocate_pages(pages).value();
    CHECK((m->page_step() > 0) == (pages >= 256 && pages % 16 == 0));
    CHECK(near(empty - free_of(on), pages * page));
    if (m->page_step() == 0) continue;
    for (const std::int32_t left : {200, 129, 128, 1}) {
      const auto held = m->info().pool.held(static_cast<std::uint32_t>(left), pages);
      m->set_pages(left).value();
      CHECK(near(empty - free_of(on), held * page));
      m->sleep().value();
      CHECK(near(free_of(on), empty + m->info().weight_bytes));
      m->wake().value();
      CHECK(m->pages() == left);
      CHECK(near(empty - free_of(on), held * page));
      m->set_pages(static_cast<std::int32_t>(pages)).value();
      CHECK(near(empty - free_of(on), pages * page));
    }
  }
  REQUIRE(on->fault(on->self) == nullptr);
}

}  // namespace weir::tests::pool_cuda_test
