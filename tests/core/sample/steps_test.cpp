#include "core/sample/steps.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

namespace weir::tests::steps_test {

using namespace weir::core;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

// The weights at temperature 1, and room for the cuts.
struct weighed {
  std::vector<float> logits, weights;
  std::vector<candidate> room;

  explicit weighed(std::vector<float> l) : logits(std::move(l)), weights(logits.size()) {
    weigh(logits, largest(logits)->logit, 1, weights);
  }
  std::vector<token_id> kept() const {
    std::vector<token_id> out;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] > 0) out.push_back(static_cast<token_id>(i));
    }
    return out;
  }
};

std::vector<token_id> top_k_ids(const std::vector<float>& logits, std::uint32_t k) {
  weighed w(logits);
  keep_top_k(w.logits, k, w.weights, w.room);
  return w.kept();
}

std::vector<token_id> top_p_ids(const std::vector<float>& logits, float p) {
  weighed w(logits);
  keep_top_p(w.logits, p, w.weights, w.room);
  return w.kept();
}

// Normal, rounded so that there are many ties.
std::vector<float> with_ties(std::mt19937& random, std::size_t n, float spread) {
  std::normal_distribution<float> d(0, spread);
  std::vector<float> l(n);
  for (float& x : l) x = std::round(d(random) * 50) / 50;
  return l;
}

std::vector<token_id> ranking(const std::vector<float>& logits) {
  std::vector<token_id> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](token_id a, token_id b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  return ids;
}

}  // namespace

TEST_CASE("the repetition penalty divides positive logits and multiplies others, once for each token") {
  token_counts seen({0, 2}, 4);
  seen.add(1);
  seen.add(1);
  seen.add(2);
  std::vector<float> l{2, -2, 0, 3};
  apply_penalties(l, seen, {.repetition_penalty = 2});
  CHECK(l == std::vector<float>{1, -4, 0, 3});
}

TEST_CASE("frequency counts the output, presence asks whether, and the prompt is not looked at") {
  token_counts seen({0}, 4);
  for (int i = 0; i < 3; ++i) seen.add(1);
  seen.add(2);
  std::vector<float> l{1, 1, 1, 1};
  apply_penalties(l, seen, {.frequency_penalty = 0.25f, .presence_penalty = 0.5f});
  CHECK(l == std::vector<float>{1, -0.25f, 0.25f, 1});
}

TEST_CASE("weights are exponentials, to a millionth") {
  for (const float t : {0.1f, 0.7f, 1.0f, 2.0f}) {
    std::vector<float> l{3.25f};
    for (float x = 3.25f; x > -200; x -= 0.0173f) l.push_back(x);
    l.push_back(-inf);
    std::vector<float> w(l.size());
    weigh(l, 3.25f, t, w);
    CHECK(w.front() == 1);
    CHECK(w.back() == 0);
    double worst = 0;
    for (std::size_t i = 0; i < l.size(); ++i) {
      const double x = (static_cast<double>(l[i]) - 3.25) / static_cast<double>(t);
      if (std::exp(x) < 1.1e-37) {
        REQUIRE(w[i] <= 1.2e-37f);
      } else {
        // The argument itself is rounded to float32: an ulp of x changes exp(x) by a share of about 1e-7 *
        // |x|.
        worst = std::max(worst, std::abs(static_cast<double>(w[i]) / std::exp(x) - 1) + 1.2e-7 * x);
      }
    }
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("top_k keeps exactly k, ties to the lowest ids") {
  const std::vector<float> l{1, 5, 3, 5, 3, 3, -inf};
  CHECK(top_k_ids(l, 1) == std::vector<token_id>{1});
  CHECK(top_k_ids(l, 2) == std::vector<token_id>{1, 3});
  CHECK(top_k_ids(l, 4) == std::vector<token_id>{1, 2, 3, 4});
  CHECK(top_k_ids(l, 6) == std::vector<token_id>{0, 1, 2, 3, 4, 5});
  CHECK(top_k_ids(l, 100) == std::vector<token_id>{0, 1, 2, 3, 4, 5});
  std::mt19937 random(2);
  for (const std::size_t n : {15u, 16u, 17u, 1000u, 5003u}) {
    for (const std::uint32_t k : {1u, 2u, 40u, 62u, 63u, 400u, 5002u}) {
      const auto logits = with_ties(random, n, 1);
      auto expected = ranking(logits);
      expected.resize(std::min<std::size_t>(n, k));
      std::sort(expected.begin(), expected.end());
      INFO("n " << n << " k " << k);
      CHECK(top_k_ids(logits, k) == expected);
    }
  }
}

TEST_CASE("top_p keeps the token that crosses, and always the best one") {
  const std::vector<float> l{std::log(0.5f), std::log(0.25f), std::log(0.125f), std::log(0.125f)};
  CHECK(top_p_ids(l, 1e-6f) == std::vector<token_id>{0});
  CHECK(top_p_ids(l, 0.49f) == std::vector<token_id>{0});
  CHECK(top_p_ids(l, 0.51f) == std::vector<token_id>{0, 1});
  CHECK(top_p_ids(l, 0.8f) == std::vector<token_id>{0, 1, 2});
  CHECK(top_p_ids(l, 0.99f) == std::vector<token_id>{0, 1, 2, 3});
}

TEST_CASE("top_p keeps a beginning of the ranking that is as short as it can be") {
  std::mt19937 random(11);
  for (const std::size_t n : {1u, 33u, 64u, 65u, 321u, 5000u}) {
    for (const float spread : {0.1f, 1.0f, 6.0f}) {
      for (const float p : {0.1f, 0.5f, 0.9f, 0.999f, 0.9999999f}) {
        const auto logits = with_ties(random, n, spread);
        const auto order = ranking(logits);
        const auto exact = [&](std::size_t i) {
          return std::exp(static_cast<double>(logits[static_cast<std::size_t>(order[i])]));
        };
        double total = 0, mass = 0;
        for (std::size_t i = 0; i < n; ++i) total += exact(i);
        const auto kept = top_p_ids(logits, p);
        std::vector<token_id> beginning(order.begin(), order.begin() + std::ptrdiff_t(kept.size()));
        std::sort(beginning.begin(), beginning.end());
        INFO("n " << n << " spread " << spread << " p " << p);
        REQUIRE_FALSE(kept.empty());
        REQUIRE(kept == beginning);
        for (std::size_t i = 0; i < kept.size(); ++i) mass += exact(i);
        CHECK(mass / total >= static_cast<double>(p) - 1e-6);
        CHECK((mass - exact(kept.size() - 1)) / total < static_cast<double>(p) + 1e-6);
      }
    }
  }
}

TEST_CASE("cuts see what the cuts before them left") {
  weighed w({std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.1f)});
  keep_top_k(w.logits, 2, w.weights, w.room);  // 4/7 and 3/7 are left
  keep_top_p(w.logits, 0.55f, w.weights, w.room);
  CHECK(w.kept() == std::vector<token_id>{0});
}

TEST_CASE("min_p is a share of the best token's probability") {
  weighed w({std::log(0.49f), 0, std::log(0.51f), -inf});
  keep_min_p(0.5f, w.weights);
  CHECK(w.kept() == std::vector<token_id>{1, 2});
  keep_min_p(1, w.weights);
  CHECK(w.kept() == std::vector<token_id>{1});
}

TEST_CASE("a draw walks the tokens in order of ids") {
  const std::vector<float> w{0.5f, 0, 1, 0.5f, 0};
  CHECK(draw_token(w, 0) == 0);
  CHECK(draw_token(w, 0.2499) == 0);
  CHECK(draw_token(w, 0.2501) == 2);
  CHECK(draw_token(w, 0.7499) == 2);
  CHECK(draw_token(w, 0.7501) == 3);
  CHECK(draw_token(w, 1 - 0x1p-53) == 3);
  std::vector<float> many(5000, 0.0f);
  many[4999] = many[511] = many[512] = 1;
  CHECK(draw_token(many, 0.3) == 511);
  CHECK(draw_token(many, 0.5) == 512);
  CHECK(draw_token(many, 1 - 0x1p-53) == 4999);
}

TEST_CASE("token counts find each token again, in prompt and output") {
  struct seen {
    token_id id;
    std::uint32_t in_output;
  };
  std::mt19937 random(5);
  std::map<token_id, std::uint32_t> expected;
  std::vector<token_id> prompt;
  for (int i = 0; i < 200; ++i) prompt.push_back(static_cast<token_id>(random() % 500) * 1024);
  for (const auto id : prompt) expected[id] = 0;
  token_counts counts(prompt, 500);
  for (int i = 0; i < 5000; ++i) {
    const auto id = static_cast<token_id>(random() % 500) * 1024;
    counts.add(id);
    ++expected[id];
  }
  CHECK(counts.size() == expected.size());
  std::vector<seen> listed{{7, 7}};
  counts.append_to(listed);
  REQUIRE(listed.size() == 1 + expected.size());
  CHECK(listed[0].in_output == 7);
  for (std::size_t i = 1; i < listed.size(); ++i) CHECK(listed[i].in_output == expected.at(listed[i].id));
}

}  // namespace weir::tests::steps_test
