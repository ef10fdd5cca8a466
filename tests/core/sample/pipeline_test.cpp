#include "core/sample/pipeline.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "core/sample/philox.h"
#include "tests/core/sample/definition.h"
#include "tests/core/sample/random_params.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::pipeline_test {

using namespace weir::core;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::mt19937& random, std::size_t n, float spread) {
  std::normal_distribution<float> d(0, spread);
  std::vector<float> l(n);
  for (float& x : l) x = d(random);
  return l;
}

sampler make(const definition& d, std::uint32_t vocab) {
  sampler s(d.p, vocab, d.prompt,
            {.max_tokens = 1000,
             .min_tokens = d.masked.empty() ? 0u : 1000u,
             .endings = d.masked,
             .prompt = d.prompt});
  for (const auto id : d.output) s.accept(id);
  return s;
}

}  // namespace

TEST_CASE("the pipeline draws what its float64 definition draws") {
  std::mt19937 random(1);
  int compared = 0, skipped = 0;
  for (int round = 0; round < 1000; ++round) {
    const std::uint32_t vocab = round % 3 == 0 ? 5000 : round % 3 == 1 ? 300 : 7;
    definition d{.p = random_params(random)};
    if (round % 4 != 1) add_rare(random, vocab, d.p);
    for (int i = 0; i < 20; ++i) d.prompt.push_back(static_cast<token_id>(random() % vocab));
    for (int i = 0; i < 30; ++i) d.output.push_back(static_cast<token_id>(random() % vocab));
    if (round % 4 == 0) d.p.logit_bias = {{1, 3.5f}, {2, -100.0f}, {5, 0.25f}};
    if (round % 5 == 0) d.masked = {0, 3};
    std::vector<std::uint32_t> allowed;  // of every second round: from one token to nearly all
    if (round % 2) {
      allowed.assign((vocab + 31) / 32, 0);
      const std::uint32_t one_in = 1 + random() % vocab;
      for (std::uint32_t id = 0; id < vocab; ++id) {
        const bool in = id == 5 || random() % one_in == 0;
        if (in) allowed[id / 32] |= 1u << id % 32;
        if (!in) d.forbidden.push_back(static_cast<token_id>(id));
      }
    }
    const auto logits = random_logits(random, vocab, round % 2 ? 1.0f : 4.0f);
    const sampler s = make(d, vocab);
    sample_scratch scratch(vocab);
    INFO("round " << round);
    const auto l = d.reshaped(logits);
    if (*std::max_element(l.begin(), l.end()) == definition::never) {  // all tokens are forbidden
      REQUIRE_FALSE(s.pick(logits, 0, scratch, allowed));
      continue;
    }
    for (std::uint32_t position = 0; position < 25; ++position) {
      const double u = uniform(d.p.seed, {.position = position});
      const auto q = d.probabilities(logits, uniform(d.p.seed, {.position = position, .draw = 1}),
                                     2 * static_cast<double>(d.p.mirostat_tau));
      if (near_edge(q, u, 1e-5)) {
        ++skipped;
        continue;
      }
      ++compared;
      REQUIRE(s.pick(logits, position, scratch, allowed) == by_definition(q, u));
    }
  }
  CHECK(compared > 20000);
  CHECK(skipped < 2500);
}

TEST_CASE("greedy takes the largest logit, and of equal ones the lowest id") {
  sample_scratch scratch(6);
  const sampler s({.temperature = 0}, 6, {}, {});
  CHECK(s.pick(std::vector<float>{1, 3, 2, 3, 3, -1}, 0, scratch) == 1);
  CHECK(s.pick(std::vector<float>{-5, -5, -5, -5, -5, -5}, 0, scratch) == 0);
  CHECK(s.pick(std::vector<float>{-inf, -inf, -7, -inf, -7, -8}, 0, scratch) == 2);
}

TEST_CASE("penalties follow what was accepted") {
  sample_scratch scratch(4);
  sampler s({.temperature = 0, .presence_penalty = 1.0f}, 4, std::vector<token_id>{2}, {.max_tokens = 9});
  const std::vector<float> logits{1.0f, 0.5f, 1.5f, -3};
  std::vector<token_id> said;
  for (std::uint32_t i = 0; i < 4; ++i) {
    said.push_back(*s.pick(logits, i, scratch));
    s.accept(said.back());
  }
  CHECK(said ==
        std::vector<token_id>{2, 0, 1, 2});  // 1.5; 1.0 (2 is at 0.5); 0.5 before the later 0.5; 0.5 again
}

TEST_CASE("logits that are not finite are a fault, and masked ones are not") {
  sample_scratch scratch(4);
  for (const float t : {0.0f, 1.0f}) {
    const sampler s({.temperature = t}, 4, {}, {});
    CHECK_FALSE(s.pick(std::vector<float>{1, std::nanf(""), 0, 0}, 0, scratch));
    CHECK_FALSE(s.pick(std::vector<float>{std::nanf(""), 1, 2, 3}, 0, scratch));
    CHECK_FALSE(s.pick(std::vector<float>{1, inf, 0, 0}, 0, scratch));
    CHECK_FALSE(s.pick(std::vector<float>{-inf, -inf, -inf, -inf}, 0, scratch));
    CHECK(s.pick(std::vector<float>{-inf, -inf, 5, -inf}, 0, scratch) == 2);
  }
  const sampler all_masked({}, 2, {}, {.min_tokens = 1, .endings = std::vector<token_id>{0, 1}});
  CHECK_FALSE(all_masked.pick(std::vector<float>{1, 1}, 0, scratch));
}

TEST_CASE("where nothing is drawn, the logits tell whether they are to blame or what was asked for") {
  sample_scratch scratch(40);
  const std::vector<float> fine(40, 1.0f);
  std::vector<float> broken = fine;
  broken[7] = std::nanf("");
  CHECK(sound(fine));
  CHECK_FALSE(sound(broken));
  CHECK_FALSE(sound(std::vector<float>(40, -inf)));
  std::vector<token_id> all(40);
  std::iota(all.begin(), all.end(), 0);
  const std::uint32_t one[] = {1u << 3, 0};
  for (const float t : {0.0f, 1e-45f, 1.0f}) {
    const sampler early({.temperature = t}, 40, {}, {.min_tokens = 1, .endings = all});
    CHECK_FALSE(early.pick(fine, 0, scratch));
    const sampler clash({.temperature = t}, 40, {}, {.min_tokens = 1, .endings = {3}});
    CHECK_FALSE(clash.pick(fine, 0, scratch, one));
    // The largest biases and penalties leave finite logits finite.
    std::vector<std::pair<token_id, float>> least;
    for (const token_id id : all) least.emplace_back(id, -100.0f);
    sampler bent({.temperature = t, .repetition_penalty = 0.01f, .frequency_penalty = 2, .logit_bias = least},
                 40, all, {.max_tokens = 10});
    for (int i = 0; i < 10; ++i) bent.accept(3);
    CHECK(bent.pick(std::vector<float>(40, -1e30f), 0, scratch));
    CHECK(bent.pick(fine, 0, scratch));
  }
}

TEST_CASE("the smallest temperatures and the largest logits do not overflow") {
  sample_scratch scratch(4);
  for (const float t : {1e-45f, 1e-30f, 1e-6f}) {
    const sampler s({.temperature = t}, 4, {}, {});
    CHECK(s.pick(std::vector<float>{1, 9, 8.999f, -50}, 3, scratch) == 1);
    CHECK(s.pick(std::vector<float>{3e38f, -3e38f, 2e38f, 1}, 3, scratch) == 0);
  }
}

TEST_CASE("a million draws have the distribution that is asked for") {
  std::mt19937 random(7);
  const auto logits = random_logits(random, 40, 1.5f);
  const auto chi_square = [&](sampling_params p) {
    definition d{.p = p};
    const auto q = d.probabilities(logits, 0);
    const sampler s = make(d, 40);
    sample_scratch scratch(40);
    std::vector<double> seen(40, 0);
    const auto draws = rounds(1'000'000);
    for (std::uint32_t i = 0; i < draws; ++i) ++seen[static_cast<std::size_t>(*s.pick(logits, i, scratch))];
    double x = 0;
    int kept = 0;
    for (std::size_t i = 0; i < q.size(); ++i) {
      if (q[i] == 0) {
        REQUIRE(seen[i] == 0);
        continue;
      }
      const double expected = q[i] * draws;
      x += (seen[i] - expected) * (seen[i] - expected) / expected;
      ++kept;
    }
    REQUIRE(kept > 1);
    // Wilson and Hilferty: the cube root of chi square over its degrees of freedom is nearly normal.
    const double k = kept - 1, c = 2 / (9 * k);
    return (std::cbrt(x / k) - (1 - c)) / std::sqrt(c);
  };
  CHECK(std::abs(chi_square({.temperature = 1, .seed = 1})) < 4);
  CHECK(std::abs(chi_square({.temperature = 0.6f, .top_k = 12, .seed = 2})) < 4);
  CHECK(std::abs(chi_square({.temperature = 1.4f, .top_p = 0.9f, .seed = 3})) < 4);
  CHECK(std::abs(chi_square({.temperature = 1, .min_p = 0.08f, .seed = 1ULL << 40})) < 4);
  CHECK(std::abs(chi_square({.temperature = 1.2f, .seed = 4, .top_n_sigma = 3})) < 4);
  CHECK(std::abs(chi_square({.temperature = 1, .seed = 5, .top_a = 0.02f})) < 4);
  CHECK(std::abs(chi_square({.temperature = 1.4f, .seed = 6, .typical_p = 0.9f})) < 4);
  CHECK(std::abs(chi_square({.temperature = 1.2f, .seed = 7, .tfs = 0.95f})) < 4);
  CHECK(std::abs(chi_square({.temperature = 1.5f, .seed = 8, .xtc_probability = 1, .xtc_threshold = 0.1f})) <
        4);
  CHECK(std::abs(chi_square({.temperature = 1, .seed = 9, .dynatemp_range = 0.5f})) < 4);
  CHECK(std::abs(chi_square({.temperature = 1, .seed = 10, .smoothing_factor = 0.2f})) < 4);
  CHECK(std::abs(chi_square({.temperature = 2, .min_p = 0.05f, .seed = 11, .temperature_last = true})) < 4);
}

TEST_CASE("a seed replays, and different seeds and positions differ") {
  std::mt19937 random(3);
  const auto logits = random_logits(random, 1000, 0.5f);
  sample_scratch scratch(1000);
  const auto run = [&](std::uint64_t seed, std::uint32_t from) {
    const sampler s({.seed = seed}, 1000, {}, {});
    std::vector<token_id> out;
    for (std::uint32_t i = 0; i < 50; ++i) out.push_back(*s.pick(logits, from + i, scratch));
    return out;
  };
  CHECK(run(5, 0) == run(5, 0));
  CHECK(run(5, 0) != run(6, 0));
  CHECK(run(5, 0) != run(5 + (1ULL << 32), 0));
  CHECK(run(5, 0) != run(5, 1));
}

TEST_CASE("a sampler that went back draws as one that was never there, and refuses what was there") {
  std::mt19937 random(static_cast<unsigned>(weir::tests::drawn_seed(0)));
  unsigned drawn = 0, compared = 0;
  const unsigned rounds = weir::tests::rounds(200);
  for (unsigned round = 0; round < rounds; ++round) {
    CAPTURE(round);
    const std::uint32_t vocab = 60 + random() % 60;
    definition d{.p = random_params(random)};
    if (round % 4 != 1) add_rare(random, vocab, d.p);
    d.p.allowed_token_ids = {};
    for (int i = 0; i < 20; ++i) d.prompt.push_back(static_cast<token_id>(random() % 8));
    const auto begun = [&] {
      return sampler(d.p, vocab, d.prompt, {.max_tokens = 100, .goes_back = true, .prompt = d.prompt});
    };
    sampler s = begun();
    std::vector<token> output;
    std::vector<float> surprises;
    std::vector<std::vector<token_id>> refused(101);  // [place]
    sample_scratch scratch(vocab);
    for (int step = 0; step < 60; ++step) {
      if (!output.empty() && random() % 4 == 0) {
        const std::size_t kept = output.size() - std::min<std::size_t>(output.size(), 1 + random() % 6);
        for (std::size_t i = kept + 1; i < refused.size(); ++i) refused[i].clear();
        refused[kept].push_back(output[kept].id);
        s.go_back(std::span(output).subspan(kept));
        output.resize(kept);
        surprises.resize(kept);
        CHECK(s.attempt() == refused[kept].size());
      } else {
        const auto id = static_cast<token_id>(random() % 8);
        if (s.refuses(id)) continue;
        surprises.push_back(static_cast<float>(random() % 8));
        s.learn(surprises.back());
        s.accept(id);
        output.push_back({id, {}});
      }
      const auto& not_these = refused[output.size()];
      for (token_id id = 0; id < 8; ++id)
        CHECK(s.refuses(id) == (s.attempt() > 0 && std::ranges::count(not_these, id) > 0));
      const auto logits = random_logits(random, vocab, 3);
      const auto position = static_cast<std::uint32_t>(d.prompt.size() + output.size());
      const auto got = s.pick(logits, position, scratch);
      REQUIRE(got.has_value());
      if (s.attempt() == 0) {
        sampler fresh = begun();
        for (std::size_t i = 0; i < output.size(); ++i) {
          fresh.learn(surprises[i]);
          fresh.accept(output[i].id);
        }
        CHECK(fresh.pick(logits, position, scratch) == got);
        ++drawn;
      } else {
        CHECK(std::ranges::count(not_these, *got) == 0);
        if (d.p.mirostat_mode > 0) continue;
        d.output.clear();
        for (const token& t : output) d.output.push_back(t.id);
        d.masked = not_these;
        draw_site at{.position = position, .attempt = s.attempt(), .draw = 1};
        const double coin = d.p.xtc_probability > 0 ? uniform(d.p.seed, at) : 1;
        at.draw = 0;
        const auto q = d.probabilities(logits, coin);
        const double u = uniform(d.p.seed, at);
        if (near_edge(q, u, 1e-5)) continue;
        CHECK(by_definition(q, u) == *got);
        ++compared;
      }
      d.masked.clear();
    }
  }
  CHECK(drawn > 5 * rounds);
  CHECK(compared > 2 * rounds);
}

}  // namespace weir::tests::pipeline_test
