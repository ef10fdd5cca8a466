// What a model takes of a cuda device: nothing more once it is warm, nothing at all once it is gone, and what
// there is too little of is refused while others go on. Skipped, saying so, where there is no device.
#include <catch2/catch.hpp>
#include <iostream>
#include <numeric>
#include <random>
#include <vector>

#include "core/model/load.h"
#include "core/sample/pipeline.h"
#include "tests/support/cuda_device.h"
#include "tests/support/drive.h"
#include "tests/support/engine_rig.h"
#include "tests/support/plain_layer.h"

namespace weir::tests::memory_cuda_test {

using namespace weir::core;

namespace {

using backend_ptr = std::shared_ptr<const kernels::backend>;

random_model small_model() {
  random_model m = parse_random_model("tiny-110m:bf16", 2048).value();
  set_layers(m.config, 2, m.config.shape.layers.front());
  return m;
}

result<std::unique_ptr<model>> make(const random_model& shape, const backend_ptr& b, std::uint32_t pages,
                                    std::uint32_t batch, std::uint32_t prompt_rows) {
  auto made = make_random_model(shape, b, 5);
  if (!made) return made.error();
  auto m = std::move(made->weights);
  if (auto ok = m->allocate_pages(pages); !ok) return ok.error();
  if (auto ok = m->warm_up(batch, prompt_rows); !ok) return ok.error();
  return m;
}

std::uint64_t free_of(const backend_ptr& b) { return b->free_bytes(b->self); }

std::vector<token_id> text_of(model& m) {
  const token_id prompt[] = {5, 6, 7, 8};
  return tests::greedy(m, prompt, 40, 3);
}

// Steps of all kinds, up to what the model was made for: sequences decode, and one computes a prompt.
void step_at_its_most(model& m, std::uint32_t batch, std::uint32_t prompt_rows) {
  const std::uint32_t vocab = m.info().vocab_size, longest = m.info().context;
  std::mt19937 r(1);
  std::vector<token_id> seen(longest);
  for (auto& id : seen) id = static_cast<token_id>(r() % vocab);
  // Every sequence reads the same pages, so that each list of pages can have its full length.
  std::vector<page_id> shared(longest / page_tokens);
  for (std::size_t i = 0; i < shared.size(); ++i) shared[i] = static_cast<page_id>(i);
  for (const std::uint32_t rows : {0u, 1u, 17u, prompt_rows / 2, prompt_rows}) {
    for (const std::uint32_t decode : {1u, batch / 2 + 1, rows > 0 ? batch - 1 : batch}) {
      batch_slice s;
      core::batch work;
      const auto add = [&](std::uint32_t n, std::uint32_t position) {
        s.first_row = static_cast<std::uint32_t>(work.tokens.size());
        s.rows = n;
        s.position = position;
        s.pages = std::span(shared).first((position + n + page_tokens - 1) / page_tokens);
        s.logits_row = static_cast<std::int32_t>(work.logits_rows++);
        work.slices.push_back(s);
        for (std::uint32_t i = 0; i < n; ++i) work.tokens.push_back(static_cast<token_id>(r() % vocab));
      };
      for (std::uint32_t i = 0; i < decode; ++i) add(1, longest - 1);
      if (rows > 0) add(rows, longest - rows);
      m.forward(work).value();
      sampling_params p;
      p.temperature = 0.8f;
      p.top_p = 0.9f;
      p.top_k = 50;
      p.repetition_penalty = 1.2f;
      p.presence_penalty = 0.5f;
      std::vector<sampler> samplers;
      samplers.reserve(work.logits_rows);
      std::vector<draw> draws;
      for (std::uint32_t i = 0; i < work.logits_rows; ++i) {
        samplers.emplace_back(p, vocab, seen, sampler::limits{});
        draws.push_back({&samplers.back(), i, longest, i, longest});
      }
      std::vector<drawn> out(draws.size());
      m.sample(draws, out).value();
      for (const auto& d : out) REQUIRE(!d.fault);
    }
  }
}

}  // namespace

TEST_CASE("cuda: a warm model's steps take no more of the device's memory, however large they are") {
  for (const bool deterministic : {false, true}) {
    const auto b = tests::cuda_device(deterministic);
    if (!b) return;
    for (const std::uint32_t batch : {7u, 64u, 600u}) {
      constexpr std::uint32_t prompt_rows = 512;
      const auto m = make(small_model(), b, 64, batch, prompt_rows).value();
      const std::uint64_t workspaces = b->memory(b->self).workspaces, free = free_of(b);
      step_at_its_most(*m, batch, prompt_rows);
      CAPTURE(deterministic, batch);
      CHECK(b->memory(b->self).workspaces == workspaces);
      CHECK(free_of(b) == free);
    }
  }
}

TEST_CASE("cuda: a model that is gone leaves nothing, nor does a device that was closed") {
  const auto watch = tests::cuda_device();
  if (!watch) return;
  std::uint64_t free[3] = {}, with_device[3] = {};
  for (auto& f : free) {
    auto& g = with_device[&f - free];
    {
      const auto b = make_backend("cuda:0", 1).value();
      for (int i = 0; i < 2; ++i) {
        const auto m = make(small_model(), b, 300, 32, 256).value();
        m->allocate_host_pages(10).value();
        step_at_its_most(*m, 32, 256);
      }
      CHECK(b->memory(b->self).workspaces < 80u << 20);  // its own
      g = free_of(b);
    }
    f = free_of(watch);
  }
  // The first time the context keeps something for good: code, and memory that the driver reserves.
  CHECK(free[1] == free[2]);
  CHECK(with_device[1] == with_device[2]);
  CHECK(free[2] > with_device[2]);
}

TEST_CASE(
    "cuda: a model that there is no room for is refused, at whatever step of its load, and another goes on") {
  const auto b = make_backend("cuda:0", 1, true);
  if (!b) {
    std::cerr << "skipped: " << b.error().message << "\n";
    return;
  }
  const auto shape = small_model();
  const auto running = make(shape, *b, 64, 32, 256).value();
  const auto wanted = text_of(*running);
  make(shape, *b, 64, 32, 256).value();  // loads the kernels' code
  std::uint64_t refused = 0, made = 0;
  std::vector<std::int64_t> left;  // what each round cost
  const auto make_in = [&](std::uint64_t room) {
    const kernels::buffer all_else(*b, free_of(*b) - room);
    if (!all_else.data()) return;
    const std::uint64_t before = free_of(*b);
    {
      const auto m = make(shape, *b, 64, 32, 256);
      CAPTURE(room >> 20);
      if (m) {
        ++made;
        CHECK(text_of(**m) == wanted);
      } else {
        ++refused;
        CHECK(m.error().code == errc::does_not_fit);
      }
      CHECK((*b)->fault((*b)->self) == nullptr);
      CHECK(text_of(*running) == wanted);
    }
    left.push_back(static_cast<std::int64_t>(before) - static_cast<std::int64_t>(free_of(*b)));
  };
  for (std::uint64_t room = 16u << 20; room <= 640u << 20; room += 24u << 20) make_in(room);
  // Nothing is lost. Where memory is short, the driver may even free memory that it had kept for itself.
  CAPTURE(left);
  CHECK(std::accumulate(left.begin(), left.end(), std::int64_t{0}) <= 0);
  CHECK(refused > 3);
  CHECK(made > 3);
}

namespace {

// Runs the same prompts again and again, through a large pool, a small pool, and a small pool with a host
// tier. Some prompts begin alike.
void compare_pools(const backend_ptr& b) {
  auto shape = small_model();
  shape.config.shape.hidden = 256;
  set_layers(shape.config, 2, tests::plain_layer(512, 4, 2, 64));
  shape.config.shape.vocab = 2000;
  std::vector<std::vector<token_id>> said;
  std::uint64_t computed[3] = {};
  for (const int way : {0, 1, 2}) {
    engine_config c = tests::small_config();
    c.max_batch = 8;
    c.prefill_rows = 256;
    c.kv_pages = way == 0 ? 600 : 40;
    c.host_pages = way == 2 ? 400 : 0;
    auto made = make_random_model(shape, b, 5).value();
    tests::engine_rig rig(std::move(made.weights), tests::letters(shape.config.shape.vocab), c);
    std::size_t at = 0;
    for (int round = 0; round < 3; ++round) {
      std::vector<std::shared_ptr<tests::recording_sink>> sinks;
      for (std::uint64_t n = 0; n < 24; ++n) {
        auto j = rig.job(n, 90, 200 + 13 * n);
        std::vector<token_id> prompt(j.prompt.size());
        for (std::size_t i = 0; i < prompt.size(); ++i)
          prompt[i] = static_cast<token_id>((i < 128 ? n % 3 : n) * 977 + i * 31) % 2000;
        j.prompt = std::move(prompt);
        j.sampling.temperature = n % 2 ? 0.9f : 0.0f;
        sinks.push_back(rig.submit(j));
      }
      rig.run(1000000);
      for (const auto& s : sinks) {
        REQUIRE(s->end->reason == finish_reason::length);
        if (way == 0) said.push_back(s->ids());
        CAPTURE(way, round, at);
        REQUIRE(s->ids() == said[at++]);
      }
    }
    const auto counts = rig.engine->counts();
    computed[way] = counts.cached_tokens;
    CHECK((counts.restored > 50) == (way == 2));
    if (way > 0) CHECK(counts.preemptions > 0);
  }
  CHECK(computed[2] > computed[1]);  // what came back is cached: it was not computed again
}

}  // namespace

TEST_CASE("with a host tier a pool that is far too small gives the tokens of a large one, bit for bit") {
  compare_pools(kernels::cpu_backend(2));
}

TEST_CASE(
    "cuda: with a host tier a pool that is far too small gives the tokens of a large one, bit for bit") {
  if (const auto b = tests::cuda_device(true)) compare_pools(b);
}

}  // namespace weir::tests::memory_cuda_test
