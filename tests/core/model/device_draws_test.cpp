#include "core/model/device_draws.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/sample/philox.h"
#include "core/sample/pipeline.h"

namespace weir::tests::device_draws_test {

using namespace weir::core;
namespace kernels = weir::kernels;

namespace {

// A decoder that keeps the draws it is given, and gives the results it is told.
struct recording_decoder final : kernels::decoder {
  std::vector<kernels::decoder_draw> draws;
  std::vector<kernels::decoder_result> results;
  std::vector<kernels::draw_logprobs> logprobs;
  bool works = true;

  bool draw(std::span<const kernels::decoder_draw> d) override {
    draws.assign(d.begin(), d.end());
    return works;
  }
  bool computing() override { return false; }
  bool collect(std::span<kernels::decoder_result> out) override {
    std::copy(results.begin(), results.end(), out.begin());
    return works;
  }
  std::uint64_t page_bytes() const noexcept override { return 0; }
  std::string_view kv_type() const noexcept override { return "bf16"; }
  void set_pages(void*, std::uint32_t, std::uint64_t) override {}
  std::uint32_t prompt_rows() const noexcept override { return 1; }
  bool warm_up(std::uint32_t, std::uint32_t, std::uint32_t) override { return true; }
  bool forward(const kernels::decoder_step&) override { return true; }
  const kernels::draw_logprobs& logprobs_of(std::uint32_t i) const override { return logprobs.at(i); }
  bool read_logits(std::uint32_t, float*) override { return true; }
};

}  // namespace

TEST_CASE("a decoder gets every sampling field, and each draw its own lists") {
  const std::vector<token_id> prompt{3, 3, 5}, endings{7, 8};
  sampling_params p;
  p.temperature = 0.5f;
  p.top_k = 4;
  p.top_p = 0.9f;
  p.min_p = 0.1f;
  p.repetition_penalty = 1.1f;
  p.frequency_penalty = 0.2f;
  p.presence_penalty = 0.3f;
  p.seed = 42;
  p.choice = 2;
  p.logit_bias = {{1, 2.5f}, {6, -3.0f}};
  sampler all(p, 10, prompt, {.max_tokens = 4, .min_tokens = 2, .endings = endings});
  all.accept(5);
  sampling_params only_bias;
  only_bias.temperature = 0;
  only_bias.logit_bias = {{9, 1.0f}};
  sampler biased(only_bias, 10, prompt, {}), plain({.seed = 1}, 10, prompt, {});

  const std::uint32_t may_come[] = {0x2a1};
  const draw asked[] = {{.from = &all, .logits_row = 2, .position = 4, .top_logprobs = 7},
                        {.from = &plain, .logits_row = 0, .position = 3},
                        {.from = &biased, .logits_row = 1, .position = 3, .allowed = may_come}};
  recording_decoder on;
  device_draws conversion;
  REQUIRE(conversion.begin(on, asked));
  REQUIRE(on.draws.size() == 3);

  const auto& full = on.draws[0];
  CHECK(full.row == 2);
  CHECK(full.temperature == 0.5f);
  CHECK(full.top_k == 4);
  CHECK(full.top_p == 0.9f);
  CHECK(full.min_p == 0.1f);
  CHECK(full.repetition == 1.1f);
  CHECK(full.frequency == 0.2f);
  CHECK(full.presence == 0.3f);
  CHECK(full.top_logprobs == 7);
  CHECK(on.draws[1].top_logprobs == -1);
  CHECK(full.uniform == uniform(42, {.position = 4, .choice = 2}));
  REQUIRE(full.seen.size() == 2);
  CHECK((full.seen[0].id == 3 && full.seen[0].in_output == 0));
  CHECK((full.seen[1].id == 5 && full.seen[1].in_output == 1));
  REQUIRE(full.biases.size() == 2);
  CHECK((full.biases[1].id == 6 && full.biases[1].value == -3.0f));
  CHECK(std::ranges::equal(full.masked, endings));

  CHECK(on.draws[1].uniform == uniform(1, {.position = 3}));
  CHECK((on.draws[1].seen.empty() && on.draws[1].biases.empty() && on.draws[1].masked.empty()));
  CHECK((on.draws[1].allowed.empty() && on.draws[1].allowed_words == 0));
  CHECK((std::ranges::equal(on.draws[2].allowed, may_come) && on.draws[2].allowed_words == 1));
  CHECK(on.draws[2].uniform == 0);  // temperature 0 needs no random number
  REQUIRE(on.draws[2].biases.size() == 1);
  CHECK(on.draws[2].biases[0].id == 9);
}

TEST_CASE("a decoder gets the numbers of rare cuts, of the draws that have some") {
  sampling_params p;
  p.seed = 5;
  p.choice = 1;
  p.top_n_sigma = 1.5f;
  p.dynatemp_range = 0.5f;
  p.dynatemp_exponent = 2;
  p.smoothing_factor = 0.3f;
  p.smoothing_curve = 2.5f;
  p.top_a = 0.1f;
  p.typical_p = 0.9f;
  p.tfs = 0.8f;
  p.mirostat_mode = 2;
  p.mirostat_tau = 3;
  p.xtc_probability = 0.5f;
  p.xtc_threshold = 0.2f;
  p.temperature_last = true;
  sampler all(p, 10, token_set(), {.max_tokens = 4});
  all.learn(4);
  all.accept(1);
  p.temperature = 0;
  sampler greedy(p, 10, token_set(), {}), plain({.seed = 1}, 10, token_set(), {});
  const auto coin = [](std::uint32_t position) {
    return uniform(5, {.position = position, .choice = 1, .draw = 1});
  };
  std::uint32_t heads = 0, tails = 0;
  while (coin(heads) >= 0.5) ++heads;
  while (coin(tails) < 0.5) ++tails;
  const draw asked[] = {{.from = &all, .position = heads},
                        {.from = &all, .position = tails},
                        {.from = &greedy, .position = heads},
                        {.from = &plain}};
  recording_decoder on;
  device_draws conversion;
  REQUIRE(conversion.begin(on, asked));
  REQUIRE(on.draws.size() == 4);
  REQUIRE(on.draws[0].rare.has_value());
  const kernels::rare_numbers& r = *on.draws[0].rare;
  CHECK(r.top_n_sigma == 1.5f);
  CHECK(r.dynatemp_range == 0.5f);
  CHECK(r.dynatemp_exponent == 2);
  CHECK(r.smoothing_factor == 0.3f);
  CHECK(r.smoothing_curve == 2.5f);
  CHECK(r.top_a == 0.1f);
  CHECK(r.typical_p == 0.9f);
  CHECK(r.tfs == 0.8f);
  CHECK(r.mirostat_mode == 2);
  CHECK(r.temperature_last == 1);
  CHECK(r.xtc_threshold == 0.2f);
  CHECK(r.mu == Approx(6 - 0.1 * (4 - 3)));
  CHECK(r.mu == all.mu());
  REQUIRE(on.draws[1].rare.has_value());
  CHECK(on.draws[1].rare->xtc_threshold < 0);  // the coin says no
  CHECK_FALSE(on.draws[2].rare.has_value());   // the largest logit needs no cut
  CHECK_FALSE(on.draws[3].rare.has_value());
}

TEST_CASE("a decoder's faults and failures reach the model") {
  recording_decoder on;
  on.results = {{5, kernels::draw_state::drawn, 2.5f},
                {-1, kernels::draw_state::fault},
                {-1, kernels::draw_state::nothing_left}};
  device_draws conversion;
  std::vector<drawn> out(3);
  REQUIRE(conversion.collect(on, out));
  CHECK((out[0].id == 5 && !out[0].fault && !out[0].nothing_left && out[0].surprise == 2.5f));
  CHECK((out[1].id == -1 && out[1].fault && !out[1].nothing_left));
  CHECK((out[2].id == -1 && !out[2].fault && out[2].nothing_left));
  on.works = false;
  CHECK_FALSE(conversion.begin(on, {}));
  CHECK_FALSE(conversion.collect(on, out));
}

}  // namespace weir::tests::device_draws_test
