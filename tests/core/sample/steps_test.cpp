#include "core/sample/steps.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

using namespace weir::core;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

std::vector<token_id> kept_ids(const std::vector<float>& logits, candidate edge) {
  std::vector<token_id> out;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (inside({logits[i], static_cast<token_id>(i)}, edge)) out.push_back(static_cast<token_id>(i));
  }
  return out;
}

std::vector<token_id> top_p_ids(const std::vector<float>& logits, float p) {
  std::vector<candidate> c;
  list_candidates(logits, c);
  return kept_ids(logits, keep_top_p(c, p, *largest(logits)));
}

}  // namespace

TEST_CASE(
    "the repetition penalty divides positive logits and multiplies negative ones, once for each token") {
  token_counts seen(4);
  seen.add(0, false);
  seen.add(1, true);
  seen.add(1, true);
  seen.add(2, true);
  seen.add(2, false);
  std::vector<float> l{2, -2, 0, 3};
  apply_penalties(l, seen.entries(), {.repetition_penalty = 2});
  CHECK(l == std::vector<float>{1, -4, 0, 3});
}

TEST_CASE("frequency counts the output, presence asks whether, and the prompt is not looked at") {
  token_counts seen(4);
  seen.add(0, false);
  for (int i = 0; i < 3; ++i) seen.add(1, true);
  seen.add(2, true);
  std::vector<float> l{1, 1, 1, 1};
  apply_penalties(l, seen.entries(), {.frequency_penalty = 0.25f, .presence_penalty = 0.5f});
  CHECK(l == std::vector<float>{1, -0.25f, 0.25f, 1});
}

TEST_CASE("top_k keeps exactly k, ties to the lowest ids") {
  const std::vector<float> l{1, 5, 3, 5, 3, 3, -inf};
  std::vector<candidate> c;
  const auto keep = [&](std::uint32_t k) {
    list_candidates(l, c);
    return kept_ids(l, keep_top_k(c, k));
  };
  CHECK(keep(1) == std::vector<token_id>{1});
  CHECK(keep(2) == std::vector<token_id>{1, 3});
  CHECK(keep(4) == std::vector<token_id>{1, 2, 3, 4});
  CHECK(keep(6) == std::vector<token_id>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("top_p keeps the token that crosses, and always the best one") {
  const std::vector<float> l{std::log(0.5f), std::log(0.25f), std::log(0.125f), std::log(0.125f)};
  CHECK(top_p_ids(l, 1e-6f) == std::vector<token_id>{0});
  CHECK(top_p_ids(l, 0.49f) == std::vector<token_id>{0});
  CHECK(top_p_ids(l, 0.51f) == std::vector<token_id>{0, 1});
  CHECK(top_p_ids(l, 0.8f) == std::vector<token_id>{0, 1, 2});
  CHECK(top_p_ids(l, 0.99f) == std::vector<token_id>{0, 1, 2, 3});
}

TEST_CASE("top_p ranks piece by piece what a full sort would") {
  std::mt19937 random(11);
  for (const std::size_t n : {1u, 63u, 64u, 65u, 320u, 321u, 5000u}) {
    for (const float p : {0.1f, 0.5f, 0.9f, 0.999f, 0.9999999f}) {
      std::normal_distribution<float> d(0, 1);
      std::vector<float> l(n);
      for (float& x : l) x = std::round(d(random) * 50) / 50;  // with many ties
      std::vector<candidate> all;
      list_candidates(l, all);
      std::sort(all.begin(), all.end(), before);
      double total = 0, mass = 0;
      for (const auto& x : all)
        total += std::exp(static_cast<double>(x.logit) - static_cast<double>(all[0].logit));
      std::size_t kept = 0;
      while (kept < n && mass < static_cast<double>(p) * total * (1 - 1e-7)) {
        mass += std::exp(static_cast<double>(all[kept].logit) - static_cast<double>(all[0].logit));
        ++kept;
      }
      std::vector<candidate> c;
      list_candidates(l, c);
      const auto edge = keep_top_p(c, p, all[0]);
      const auto at =
          std::find_if(all.begin(), all.end(), [&](auto x) { return x.id == edge.id; }) - all.begin() + 1;
      INFO("n " << n << " p " << p);
      CHECK(std::abs(at - static_cast<std::ptrdiff_t>(kept)) <= (p > 0.9999f ? 20 : 1));
    }
  }
}

TEST_CASE("min_p is a share of the best token's probability") {
  const std::vector<float> l{0, std::log(0.51f), std::log(0.49f), -inf};
  CHECK(kept_ids(l, keep_min_p(0.5f, {0, 0})) == std::vector<token_id>{0, 1});
  CHECK(kept_ids(l, keep_min_p(1, {0, 0})) == std::vector<token_id>{0});
}

TEST_CASE("a draw walks the kept tokens in order of ids") {
  const std::vector<float> l{std::log(0.25f), -inf, std::log(0.5f), std::log(0.25f)};
  std::vector<float> room(4);
  const candidate top{l[2], 2};
  const auto at = [&](double u, candidate edge = no_edge) { return draw_token(l, edge, top, u, room); };
  CHECK(at(0) == 0);
  CHECK(at(0.2499) == 0);
  CHECK(at(0.2501) == 2);
  CHECK(at(0.7499) == 2);
  CHECK(at(0.7501) == 3);
  CHECK(at(1 - 0x1p-53) == 3);
  CHECK(at(0.99, {l[0], 0}) == 2);  // 3 is cut: same logit as 0, later id
  CHECK(at(0.99, {l[2], 2}) == 2);
}

TEST_CASE("token counts find each token again") {
  std::mt19937 random(5);
  token_counts counts(500);
  std::vector<std::uint32_t> expected(500, 0);
  for (int i = 0; i < 5000; ++i) {
    const auto id = static_cast<token_id>(random() % 500);
    const bool output = random() % 3 != 0;
    counts.add(id * 1024, output);
    expected[static_cast<std::size_t>(id)] += output;
  }
  CHECK(counts.entries().size() == 500);
  for (const auto& e : counts.entries())
    CHECK(e.in_output == expected[static_cast<std::size_t>(e.id / 1024)]);
}
