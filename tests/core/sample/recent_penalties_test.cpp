#include "core/sample/recent_penalties.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "core/sample/pipeline.h"
#include "tests/core/sample/definition.h"

namespace weir::tests::recent_penalties_test {

using namespace weir::core;

TEST_CASE("penalties with a range are those of their float64 definition after every token") {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    constexpr std::uint32_t vocab = 40, most = 90;
    const std::int32_t ranges[] = {0, 1, 5, 20, 64, 1000};
    const std::uint32_t decays[] = {0, 1, 3, 16, 1000};
    definition d{.p = {.repetition_penalty = round % 3 ? 1.7f : 0.6f,
                       .frequency_penalty = 0.3f,
                       .presence_penalty = -0.4f,
                       .repetition_range = ranges[random() % 6],
                       .repetition_decay = decays[random() % 5]}};
    for (std::size_t i = random() % 50; i > 0; --i)
      d.prompt.push_back(static_cast<token_id>(random() % vocab));
    token_history history(d.prompt, most);
    recent_penalties seen(d.p, vocab, history, most);
    INFO("range " << d.p.repetition_range << " decay " << d.p.repetition_decay << " prompt "
                  << d.prompt.size());
    std::vector<float> raw(vocab);
    std::normal_distribution<float> normal(0, 2);
    double worst = 0;
    for (std::uint32_t i = 0; i <= most; ++i) {
      for (float& l : raw) l = normal(random);
      auto got = raw;
      apply_penalties(got, seen);
      const auto exact = d.reshaped(raw);
      for (std::size_t id = 0; id < vocab; ++id)
        worst = std::max(worst, std::abs(exact[id] - static_cast<double>(got[id])));
      if (i == most) break;
      d.output.push_back(static_cast<token_id>(random() % vocab));
      history.add(d.output.back());
      seen.add(history);
    }
    CHECK(worst < 2e-5);
  }
}

TEST_CASE("the range counts from the latest token, and the decay begins with a whole share") {
  const std::vector<token_id> prompt{1, 2, 3, 4, 5};
  const auto factors = [&](std::int32_t range, std::uint32_t decay) {
    const recent_penalties seen(
        {.repetition_penalty = 2, .repetition_range = range, .repetition_decay = decay}, 10,
        token_history(prompt, 1), 1);
    std::map<token_id, float> out;
    seen.for_each([&](token_id id, float factor, float) { out[id] = factor; });
    return out;
  };
  using map = std::map<token_id, float>;
  CHECK(factors(0, 0) == map{});
  CHECK(factors(2, 0) == map{{4, 2}, {5, 2}});
  CHECK(factors(1, 2) == map{{3, 1.5f}, {4, 2}, {5, 2}});
  CHECK(factors(0, 4) == map{{2, 1.25f}, {3, 1.5f}, {4, 1.75f}, {5, 2}});
}

TEST_CASE("a range as long as the sequence is no range") {
  std::mt19937 random(3);
  std::vector<float> raw(30);
  std::normal_distribution<float> normal(0, 1);
  const std::vector<token_id> prompt{1, 2, 3};
  const sampling_params all{.repetition_penalty = 1.5f, .frequency_penalty = 0.3f, .presence_penalty = 0.2f};
  auto ranged = all;
  ranged.repetition_range = 1000;
  sampler a(all, 30, prompt, {.max_tokens = 50, .prompt = prompt});
  sampler b(ranged, 30, prompt, {.max_tokens = 50, .prompt = prompt});
  sample_scratch scratch(30);
  for (std::uint32_t i = 0; i < 50; ++i) {
    for (float& l : raw) l = normal(random);
    const auto id = a.pick(raw, i, scratch);
    REQUIRE(id == b.pick(raw, i, scratch));
    a.accept(*id);
    b.accept(*id);
  }
}

TEST_CASE("tokens that are not allowed do not come, whatever their logits and biases") {
  sample_scratch scratch(70);
  std::vector<float> l(70, 0.0f);
  l[3] = l[68] = 50;
  sampler banned({.temperature = 0, .disallow_tokens = {3, 68}}, 70, {},
                 {.max_tokens = 4, .min_tokens = 1, .endings = {0, 3}});
  CHECK(banned.pick(l, 0, scratch) == 1);
  CHECK(std::vector<token_id>(banned.masked().begin(), banned.masked().end()) ==
        std::vector<token_id>{0, 3, 68});
  banned.accept(1);
  CHECK(banned.pick(l, 1, scratch) == 0);
  CHECK(banned.changes_logits());
  const sampler only({.temperature = 0, .logit_bias = {{3, 100.0f}}, .allowed_token_ids = {7, 69}}, 70, {},
                     {});
  CHECK(only.pick(l, 0, scratch) == 7);
  const sampler none({.disallow_tokens = {7}, .allowed_token_ids = {7}}, 70, {}, {});
  CHECK_FALSE(none.pick(l, 0, scratch));
}

}  // namespace weir::tests::recent_penalties_test
