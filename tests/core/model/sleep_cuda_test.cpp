// Models that sleep on a cuda device: graphs, plans of products and tensor maps hold after a wake, memory is
// given back, and a model beside is not touched. Skipped, saying so, where there is no device.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>

#include "core/model/load.h"
#include "core/sample/pipeline.h"
#include "tests/support/cuda_device.h"
#include "tests/support/drive.h"
#include "tests/support/plain_layer.h"

namespace weir::tests::sleep_cuda_test {

using namespace weir::core;

namespace {

using backend_ptr = std::shared_ptr<const kernels::backend>;

// Null, saying so: there is no device, or it cannot give memory back.
backend_ptr device(bool deterministic) {
  const auto b = tests::cuda_device(deterministic);
  if (!b || b->do_give_back) return b;
  std::cerr << "skipped: " << b->name << " has no virtual memory management\n";
  return nullptr;
}

random_model dense(const char* type) {
  random_model m = parse_random_model(std::string("tiny-110m:") + type, 2048).value();
  set_layers(m.config, 3, tests::plain_layer(2048, 12, 4, 64));
  m.config.shape.layers[1].mixer.rule.window = 100;
  return m;
}

random_model mixture(const char* type) {
  random_model m = parse_random_model(std::string("tiny-moe-200m:") + type, 2048).value();
  set_layers(m.config, 2, m.config.shape.layers.front());
  return m;
}

std::unique_ptr<model> make(const random_model& shape, const backend_ptr& on, std::uint32_t pages,
                            std::uint64_t seed) {
  auto m = std::move(make_random_model(shape, on, seed).value().weights);
  m->allocate_pages(pages).value();
  m->warm_up(16, 512).value();
  return m;
}

std::uint64_t free_of(const backend_ptr& b) { return b->free_bytes(b->self); }

// Whether two numbers of bytes are equal but for whole units of the device (2 MiB), of weights and of pages,
// and for what the driver keeps for itself, such as tables of addresses.
bool near(std::uint64_t a, std::uint64_t b) { return std::abs(static_cast<std::int64_t>(a - b)) <= 6 << 20; }

struct drawn_tokens {
  std::vector<token_id> ids;
  std::vector<float> logits;  // of the last step
  bool operator==(const drawn_tokens&) const = default;
};

// Whether two lists of logits agree as far as elements of 16 bits do.
bool near(const std::vector<float>& a, const std::vector<float>& b) {
  float most = 0, apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i]));
    apart = std::max(apart, std::abs(a[i] - b[i]));
  }
  return a.size() == b.size() && most > 0 && apart <= 0.03f * most;
}

// Tokens that the device draws for several sequences at once, behind prompts of several lengths. Decoding
// replays graphs. `as`: its tokens go on in place of those that are drawn.
drawn_tokens drawn_by(model& m, std::uint32_t sequences, const drawn_tokens* as = nullptr) {
  drawn_tokens all;
  std::vector<tests::driven_sequence> drive;
  sampling_params p;
  p.temperature = 0.8f;
  p.top_k = 40;
  std::vector<sampler> samplers;
  samplers.reserve(sequences);
  std::vector<token_id> next(sequences);
  for (std::uint32_t i = 0; i < sequences; ++i) {
    drive.emplace_back(m, static_cast<page_id>(i * 8), 8);
    samplers.emplace_back(p, m.info().vocab_size, token_set{}, sampler::limits{});
  }
  for (int step = 0; step < 20; ++step) {
    batch b;
    std::vector<draw> draws;
    for (std::uint32_t i = 0; i < sequences; ++i) {
      const std::uint32_t rows = step == 0 ? 20 + 17 * i : 1;
      b.slices.push_back(drive[i].slice(static_cast<std::uint32_t>(b.tokens.size()), rows,
                                        static_cast<std::int32_t>(b.logits_rows++)));
      for (std::uint32_t r = 0; r < rows; ++r)
        b.tokens.push_back(step == 0 ? static_cast<token_id>((r * 31 + i * 7) % m.info().vocab_size)
                                     : next[i]);
      drive[i].advance(rows);
      draws.push_back({&samplers[i], i, drive[i].position(), 100 + i, 20});
    }
    m.forward(b).value();
    std::vector<drawn> out(sequences);
    m.sample(draws, out).value();
    for (std::uint32_t i = 0; i < sequences; ++i) {
      next[i] = as ? as->ids[all.ids.size()] : out[i].id;
      all.ids.push_back(out[i].id);
    }
  }
  for (std::uint32_t i = 0; i < sequences; ++i) {
    const auto row = m.logits(i);
    all.logits.insert(all.logits.end(), row.begin(), row.end());
  }
  return all;
}

}  // namespace

TEST_CASE("cuda: a model that slept draws the tokens of before, from graphs that were recorded before") {
  for (const bool deterministic : {false, true}) {
    const auto on = device(deterministic);
    if (!on) return;
    for (const auto& shape :
         {dense("bf16"), dense("q8_0"), dense("q4_k"), mixture("bf16"), mixture("q4_0")}) {
      CAPTURE(deterministic, kernels::name(shape.type), shape.config.architecture);
      const auto m = make(shape, on, 600, 5);
      REQUIRE(m->info().runs_ahead);
      std::vector<drawn_tokens> wanted;
      for (const std::uint32_t n : {1u, 3u, 12u}) wanted.push_back(drawn_by(*m, n));
      const std::uint64_t workspaces = on->memory(on->self).workspaces, awake = free_of(on);
      const std::uint64_t slept = m->info().weight_bytes + 600 * m->info().page_bytes;
      for (int round = 0; round < 3; ++round) {
        m->sleep().value();
        CHECK(near(free_of(on), awake + slept));
        m->wake().value();
        CHECK(near(free_of(on), awake));
        CHECK(on->memory(on->self).workspaces == workspaces);
        std::size_t i = 0;
        for (const std::uint32_t n : {1u, 3u, 12u}) {
          const auto& before = wanted[i++];
          const auto after = drawn_by(*m, n, &before);
          // Without `deterministic` bits differ from one step to the next, without a sleep too.
          if (deterministic)
            CHECK(after == before);
          else
            CHECK(near(before.logits, after.logits));
        }
      }
      REQUIRE(on->fault(on->self) == nullptr);
    }
  }
}

TEST_CASE("cuda: a model beside goes on while another one sleeps, and may take the memory meanwhile") {
  const auto watch = device(true);
  if (!watch) return;
  const auto own = [] { return make_backend("cuda:0", 1, true).value(); };
  const auto sleeper = make(dense("bf16"), own(), 600, 5), beside = make(dense("q8_0"), own(), 100, 6);
  const auto wanted = drawn_by(*sleeper, 5), of_beside = drawn_by(*beside, 5);
  sleeper->sleep().value();
  CHECK(drawn_by(*beside, 5) == of_beside);
  {
    const kernels::buffer others(watch, free_of(watch) - (64u << 20));
    REQUIRE(others.data() != nullptr);
    const auto refused = sleeper->wake();
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::does_not_fit);
    CHECK(drawn_by(*beside, 5) == of_beside);
  }
  sleeper->wake().value();
  CHECK(drawn_by(*sleeper, 5) == wanted);
  CHECK(drawn_by(*beside, 5) == of_beside);
}

TEST_CASE("cuda: a model that is destroyed asleep leaves nothing on the device") {
  const auto on = device(false);
  if (!on) return;
  const auto round = [&] {
    const auto m = make(dense("bf16"), on, 600, 5);
    drawn_by(*m, 3);
    m->sleep().value();
  };
  round();  // loads code, which stays
  const std::uint64_t free = free_of(on);
  for (int i = 0; i < 3; ++i) round();
  CHECK(near(free_of(on), free));
}

}  // namespace weir::tests::sleep_cuda_test
