#include "core/sample/cuts.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "core/sample/pipeline.h"
#include "tests/core/sample/definition.h"

namespace weir::tests::cuts_test {

using namespace weir::core;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

// The weights that `p` leaves, as probabilities.
std::vector<double> cut(std::vector<float> logits, const sampling_params& p, double coin = 0, double mu = 0) {
  std::vector<float> weights(logits.size());
  std::vector<candidate> room;
  weigh_rarely(logits, p, {.coin = coin, .mu = mu}, weights, room);
  double total = 0;
  for (const float w : weights) total += static_cast<double>(w);
  std::vector<double> out;
  for (const float w : weights) out.push_back(static_cast<double>(w) / total);
  return out;
}

void check_same(const std::vector<float>& logits, const sampling_params& p, double mu = 0) {
  const auto exact = definition{.p = p}.probabilities(logits, 0, mu);
  const auto got = cut(logits, p, 0, mu);
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (exact[i] > 1e-30) REQUIRE((got[i] > 0));
    if (got[i] > 0) REQUIRE((exact[i] > 0));
    worst = std::max(worst, std::abs(got[i] - exact[i]));
  }
  CHECK(worst < 2e-6);
}

}  // namespace

TEST_CASE("each rare cut keeps the tokens of its float64 definition, with their probabilities") {
  std::mt19937 random(21);
  for (const std::size_t n : {1u, 2u, 17u, 300u, 5000u}) {
    for (const float spread : {0.3f, 1.0f, 4.0f}) {
      std::normal_distribution<float> d(0, spread);
      std::vector<float> l(n);
      for (float& x : l) x = d(random);
      if (n > 2) l[1] = -inf;
      for (const float t : {0.5f, 1.0f, 1.7f}) {
        INFO("n " << n << " spread " << spread << " t " << t);
        for (const float x : {0.3f, 1.0f, 2.5f}) check_same(l, {.temperature = t, .top_n_sigma = x});
        for (const float x : {0.01f, 0.2f, 0.9f, 1.0f}) check_same(l, {.temperature = t, .top_a = x});
        for (const float x : {0.01f, 0.4f, 0.9f}) check_same(l, {.temperature = t, .typical_p = x});
        for (const float x : {0.0f, 0.3f, 0.95f}) check_same(l, {.temperature = t, .tfs = x});
        for (const float x : {0.0f, 0.01f, 0.1f, 0.5f})
          check_same(l, {.temperature = t, .xtc_probability = 1, .xtc_threshold = x});
        for (const float x : {0.2f, 1.0f, 2.0f})
          for (const float e : {0.3f, 1.0f, 4.0f})
            check_same(l, {.temperature = t, .dynatemp_range = x, .dynatemp_exponent = e});
        for (const float x : {0.05f, 0.5f, 3.0f})
          for (const float c : {1.0f, 1.5f, 3.0f, 5.0f})
            check_same(l, {.temperature = t, .smoothing_factor = x, .smoothing_curve = c});
        for (const std::uint32_t mode : {1u, 2u})
          for (const double mu : {-3.0, 0.5, 2.25, 6.0, 30.0}) {
            check_same(l, {.temperature = t, .mirostat_mode = mode}, mu);
            check_same(l, {.temperature = t, .top_p = 0.9f, .temperature_last = true, .mirostat_mode = mode},
                       mu);
          }
        check_same(l, {.temperature = t, .min_p = 0.05f, .temperature_last = true});
        check_same(l, {.temperature = t, .top_p = 0.8f, .smoothing_factor = 0.3f, .temperature_last = true});
      }
    }
  }
}

TEST_CASE("top_n_sigma leaves out logits of -inf, and keeps all that are equal") {
  // The finite logits have mean 2 and deviation 2.
  const std::vector<float> l{4, 0, -inf, 4, 0};
  CHECK(cut(l, {.top_n_sigma = 1.9f}) == std::vector<double>{0.5, 0, 0, 0.5, 0});
  CHECK(cut(l, {.top_n_sigma = 2})[1] > 0);
  CHECK(cut({3, 3, 3, 3}, {.top_n_sigma = 0.1f}) == std::vector<double>(4, 0.25));
}

TEST_CASE("top_a is a share of the square of the best probability") {
  // Shares 1/2, 1/4, 1/8, 1/8: the bound is top_a / 4.
  const std::vector<float> l{std::log(4.0f), std::log(2.0f), 0, 0};
  CHECK(cut(l, {.top_a = 0.45f})[3] > 0);
  CHECK(cut(l, {.top_a = 0.55f})[2] == 0);
  CHECK(cut(l, {.top_a = 0.95f})[1] > 0);
}

TEST_CASE("typical drops the likeliest token where another is nearer to the entropy, ties to the lowest id") {
  // Shares 0.4 and ten of 0.06: -log p is 0.92 and 2.81, the entropy 2.05.
  std::vector<float> l(11, std::log(0.06f));
  l[4] = std::log(0.4f);
  const auto one = cut(l, {.typical_p = 0.01f});
  CHECK(one[0] == 1);
  CHECK(one[4] == 0);
  CHECK(cut(l, {.typical_p = 0.95f})[4] > 0);
}

TEST_CASE("tfs counts what is dropped as 0, and keeps a flat vocabulary") {
  CHECK(cut(std::vector<float>(6, 2.0f), {.tfs = 0.1f}) == std::vector<double>(6, 1.0 / 6));
  // Shares 0.5, 0.3, 0.2, 0, 0: bends 0.1, 0.1, 0.2, of which the parts add up to 1/4, 1/2, 1.
  const std::vector<float> l{std::log(0.2f), -inf, std::log(0.5f), std::log(0.3f), -inf};
  const auto kept = [&](float tfs) {
    const auto q = cut(l, {.tfs = tfs});
    return std::vector<bool>{q[0] > 0, q[2] > 0, q[3] > 0};
  };
  CHECK(kept(0.2f) == std::vector<bool>{false, true, false});
  CHECK(kept(0.3f) == std::vector<bool>{false, true, true});
  CHECK(kept(0.6f) == std::vector<bool>{true, true, true});
}

TEST_CASE("XTC keeps the worst of the top choices, the highest id of equal ones, where its coin says so") {
  // Shares 0.4, 0.3, 0.2, 0.1.
  const std::vector<float> l{std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.1f)};
  const sampling_params p{.xtc_probability = 0.5f, .xtc_threshold = 0.15f};
  const auto q = cut(l, p, 0.49);
  CHECK((q[0] == 0 && q[1] == 0 && q[2] > 0.6 && q[3] > 0.3));
  CHECK(cut(l, p, 0.5)[0] > 0);
  const auto one = cut(l, {.xtc_probability = 1, .xtc_threshold = 0.35f});
  CHECK((one[0] > 0 && one[1] > 0));  // a single choice stays
  const auto equal = cut({1, 1, 1, -9}, {.xtc_probability = 1, .xtc_threshold = 0.2f});
  CHECK((equal[0] == 0 && equal[1] == 0 && equal[2] > 0.99 && equal[3] > 0));
}

TEST_CASE("XTC is done as often as it is asked for") {
  const std::vector<float> l{2, 1, 0, -1};
  sample_scratch scratch(4);
  const sampler even({.temperature = 100, .seed = 5, .xtc_probability = 0.25f, .xtc_threshold = 0.1f}, 4, {},
                     {});
  double last = 0;
  for (std::uint32_t i = 0; i < 10000; ++i) last += even.pick(l, i, scratch) == 3;
  const double q = 0.25 + 0.75 * definition{.p = {.temperature = 100}}.probabilities(l)[3];
  CHECK(std::abs(last / 10000 - q) < 4 * std::sqrt(q * (1 - q) / 10000));
}

TEST_CASE("dynamic temperature is low where the model is sure and high where it is not") {
  // All equal: the entropy is log n, and the temperature does not matter. One token: it has none.
  CHECK(cut({7, 7, -inf}, {.dynatemp_range = 0.5f})[0] == 0.5);
  CHECK(cut({-inf, 3, -inf}, {.dynatemp_range = 2})[1] == 1);
  const auto sure = cut({9, 0, 0}, {.temperature = 1, .dynatemp_range = 1});  // the temperature is near 0
  CHECK(sure[0] == 1);
}

TEST_CASE("temperature_last cuts by the probabilities of temperature 1") {
  // Shares 0.9, 0.06, 0.04: a min_p of 0.05 is 0.045 of the whole.
  const std::vector<float> l{std::log(0.9f), std::log(0.06f), std::log(0.04f)};
  const auto last = cut(l, {.temperature = 2, .min_p = 0.05f, .temperature_last = true});
  CHECK(last[2] == 0);
  CHECK(last[1] == Approx(std::sqrt(0.06) / (std::sqrt(0.06) + std::sqrt(0.9))));
  CHECK(cut(l, {.temperature = 2, .min_p = 0.05f})[2] > 0);
}

TEST_CASE("the rare steps take the largest logits and the smallest temperatures") {
  const std::vector<float> l{3e38f, -3e38f, 2e38f, 1};
  for (const float t : {1e-45f, 1e-6f, 2.0f}) {
    INFO("t " << t);
    for (const float c : {1.0f, 5.0f})
      CHECK(
          cut(l, {.temperature = t, .top_a = 0.1f, .smoothing_factor = 0.1f, .smoothing_curve = c}).size() ==
          4);
    CHECK(cut(l, {.temperature = t, .typical_p = 0.5f})[0] == 1);
    CHECK(cut(l, {.temperature = t, .tfs = 0.5f})[0] == 1);
    CHECK(cut(l, {.temperature = t, .dynatemp_range = 2})[0] == 1);
    CHECK(cut(l, {.temperature = t, .temperature_last = true})[0] == 1);
    CHECK(cut(l, {.temperature = t, .xtc_probability = 1})[0] == 1);
  }
}

TEST_CASE("neutral values of the rare cuts change no draw") {
  std::mt19937 random(4);
  std::normal_distribution<float> d(0, 2);
  std::vector<float> l(3000);
  for (float& x : l) x = d(random);
  sample_scratch scratch(3000);
  const sampler plain({.seed = 9}, 3000, {}, {});
  const sampler neutral({.seed = 9,
                         .repetition_range = 5,
                         .repetition_decay = 5,
                         .xtc_threshold = 0.3f,
                         .dynatemp_exponent = 2,
                         .smoothing_curve = 3},
                        3000, {}, {});
  const sampler cutting({.seed = 9, .top_n_sigma = 1}, 3000, {}, {});
  int differ = 0;
  for (std::uint32_t i = 0; i < 200; ++i) {
    CHECK(plain.pick(l, i, scratch) == neutral.pick(l, i, scratch));
    differ += plain.pick(l, i, scratch) != cutting.pick(l, i, scratch);
  }
  CHECK(differ > 0);
}

}  // namespace weir::tests::cuts_test
