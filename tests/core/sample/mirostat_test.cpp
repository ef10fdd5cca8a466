#include "core/sample/mirostat.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "core/sample/philox.h"
#include "core/sample/pipeline.h"
#include "tests/core/sample/definition.h"

namespace weir::tests::mirostat_test {

using namespace weir::core;

namespace {

std::vector<std::vector<float>> random_rows(std::size_t rows, std::size_t vocab) {
  std::mt19937 random(3);
  std::normal_distribution<float> d(0, 1.5f);
  std::vector<std::vector<float>> out(rows, std::vector<float>(vocab));
  for (auto& row : out)
    for (float& x : row) x = d(random);
  return out;
}

struct told {
  std::vector<token_id> ids;
  double surprise = 0;  // the mean of the latter half
};

told draw_many(sampler s, const std::vector<std::vector<float>>& rows, std::uint32_t draws) {
  sample_scratch scratch(static_cast<std::uint32_t>(rows[0].size()));
  told out;
  for (std::uint32_t i = 0; i < draws; ++i) {
    out.ids.push_back(*s.pick(rows[i % rows.size()], i, scratch));
    if (i >= draws / 2) out.surprise += static_cast<double>(scratch.surprise) / (draws - draws / 2);
    s.learn(scratch.surprise);
    s.accept(out.ids.back());
  }
  return out;
}

}  // namespace

TEST_CASE("mirostat: the mean surprise comes to its target, in both modes") {
  const auto rows = random_rows(50, 2000);  // without it the surprise is about 9.3
  for (const std::uint32_t mode : {1u, 2u})
    for (const float tau : {2.0f, 4.0f, 6.0f}) {
      INFO("mode " << mode << ", tau " << tau);
      const sampling_params p{.seed = 7, .mirostat_mode = mode, .mirostat_tau = tau};
      const double mean = draw_many(sampler(p, 2000, {}, {.max_tokens = 4000}), rows, 4000).surprise;
      CHECK(std::abs(mean - static_cast<double>(tau)) < 0.1);
    }
}

TEST_CASE("mirostat: the tokens and surprises are those of the definition, and a seed replays them") {
  const auto rows = random_rows(20, 300);
  for (const std::uint32_t mode : {1u, 2u}) {
    INFO("mode " << mode);
    const sampling_params p{.seed = 11, .mirostat_mode = mode, .mirostat_tau = 3, .mirostat_eta = 0.3f};
    const sampler fresh(p, 300, {}, {.max_tokens = 200});
    const auto ids = draw_many(fresh, rows, 200).ids;
    CHECK(draw_many(fresh, rows, 200).ids == ids);
    double mu = 6;
    for (std::uint32_t i = 0; i < 200; ++i) {
      const auto q = definition{.p = p}.probabilities(rows[i % rows.size()], 1, mu);
      const double u = uniform(p.seed, {.position = i});
      double before = 0;
      const auto id = static_cast<std::size_t>(ids[i]);
      for (std::size_t k = 0; k < id; ++k) before += q[k];
      INFO("draw " << i);
      REQUIRE((before < u + 1e-5 && before + q[id] > u - 1e-5));
      mu -= static_cast<double>(p.mirostat_eta) * (-std::log2(q[id]) - 3);
    }
  }
}

TEST_CASE("mirostat: equal logits, one token, and a mu that is far away") {
  std::vector<candidate> room;
  for (const std::uint32_t mode : {1u, 2u})
    for (const double mu : {-100.0, 2.0, 100.0}) {
      INFO("mode " << mode << ", mu " << mu);
      const sampling_params p{.mirostat_mode = mode};
      std::vector<float> equal(8, 1.0f), one{0, 1, 0};
      keep_mirostat(std::vector<float>(8, 2.0f), p, mu, equal, room);
      CHECK(equal[0] == 1);
      CHECK((equal[7] == 1) == (mu == 100));
      keep_mirostat(std::vector<float>{1, 2, 1}, p, mu, one, room);
      CHECK(one == std::vector<float>{0, 1, 0});
    }
}

}  // namespace weir::tests::mirostat_test
