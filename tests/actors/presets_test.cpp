// A preset under a request, and over a model's defaults.
#include "actors/presets.h"

#include <catch2/catch.hpp>

#include "actors/make_job.h"
#include "tests/actors/made_job.h"
#include "tests/actors/service_fixture.h"

namespace weir::tests::presets_test {

using namespace weir::actors;

namespace {

struct preset_model : sim_served {
  preset_model() {
    defaults.temperature = 0.6f;
    defaults.top_k = 20;
    defaults.min_p = 0.25f;
  }
};

sampling_presets two_presets() {
  sampling_presets all;
  core::sampling_request& story = all["story"];
  story.top_k = 40;
  story.min_p = 0.5;
  story.seed = 11;
  story.logit_bias = {{3, 1.0}};
  story.disallow_tokens = {4};
  all["dull"].temperature = 0;
  return all;
}

request with_preset(std::string name) {
  request r;
  r.input = "hi";
  r.preset = std::move(name);
  return r;
}

core::result<core::job> made_with(request r, const served_model& m) {
  if (auto taken = take_preset(r, two_presets()); !taken) return taken.error();
  return job_without_prompt(r, m);
}

}  // namespace

TEST_CASE("presets: a request's own field comes first, then the preset's, then the model's default") {
  const preset_model m;
  auto r = with_preset("story");
  r.sampling.min_p = 0;
  const auto j = made_with(r, m);
  REQUIRE(j.has_value());
  CHECK(j->sampling.temperature == 0.6f);
  CHECK(j->sampling.top_k == 40);
  CHECK(j->sampling.min_p == 0);
  CHECK(j->sampling.seed == 11);
  CHECK(j->sampling.logit_bias.size() == 1);
  CHECK(made_with(with_preset("dull"), m)->sampling.temperature == 0);
  request none;
  none.input = "hi";
  CHECK(made_with(none, m)->sampling.top_k == 20);
}

TEST_CASE("presets: a field that the request leaves out by its value is not the preset's") {
  const preset_model m;
  auto r = with_preset("story");
  r.sampling_left_out = {"logit_bias", "seed"};
  REQUIRE(take_preset(r, two_presets()).has_value());
  CHECK(r.sampling.logit_bias.empty());
  CHECK_FALSE(r.sampling.seed.has_value());
  CHECK(r.sampling.disallow_tokens == std::vector<std::int64_t>{4});
  const auto j = job_without_prompt(r, m);
  REQUIRE(j.has_value());
  CHECK(j->sampling.logit_bias.size() == 0);
}

TEST_CASE("presets: banned strings and healing are the preset's, unless the request has its own") {
  sampling_presets all;
  all["story"].banned_strings = {"NEVER", "ever"};
  all["story"].token_healing = true;
  auto r = with_preset("story");
  REQUIRE(take_preset(r, all).has_value());
  CHECK(r.token_healing == true);
  const auto j = job_without_prompt(r, preset_model());
  REQUIRE(j.has_value());
  CHECK(j->banned.bytes() == core::stop_strings({"never", "ever"}).bytes());
  auto own = with_preset("story");
  own.banned_strings.emplace();
  own.token_healing = false;
  REQUIRE(take_preset(own, all).has_value());
  CHECK(own.token_healing == false);
  CHECK(job_without_prompt(own, preset_model())->banned.empty());
}

TEST_CASE("presets: all choices of a request have the seed of its preset") {
  const preset_model m;
  auto r = with_preset("story");
  REQUIRE(take_preset(r, two_presets()).has_value());
  const auto all = job_without_prompt(r, m);
  REQUIRE(all.has_value());
  CHECK(choice_of(*all, r, 1).sampling.seed == 11);
}

TEST_CASE("presets: an unknown name is refused with the names that there are") {
  const auto no = made_with(with_preset("poem"), preset_model());
  REQUIRE_FALSE(no.has_value());
  CHECK(no.error().code == core::errc::invalid_param);
  CHECK(no.error().param == "preset");
  CHECK_THAT(no.error().message, Catch::Contains("'poem'") && Catch::Contains("dull, story"));
  auto r = with_preset("story");
  const auto without = take_preset(r, {});
  REQUIRE_FALSE(without.has_value());
  CHECK(without.error().code == core::errc::invalid_param);
  CHECK(without.error().param == "preset");
}

TEST_CASE("presets: what needs no model is checked without one") {
  core::sampling_request r;
  r.top_k = -1;
  r.disallow_tokens = {1'000'000};  // which a model may have
  r.bad_words = {"word", std::vector<std::int64_t>{1, 2}};
  CHECK(check_sampling(r).has_value());
  const auto refused = [](core::sampling_request bad) {
    const auto fine = check_sampling(bad);
    return fine ? std::string() : fine.error().param;
  };
  core::sampling_request bad;
  bad.temperature = 2.5;
  CHECK(refused(bad) == "temperature");
  bad = {};
  bad.disallow_tokens = {-1};
  CHECK(refused(bad) == "disallow_tokens");
  bad = {};
  bad.logit_bias = {{1, 101}};
  CHECK(refused(bad) == "logit_bias");
  bad = {};
  bad.bad_words = {""};
  CHECK(refused(bad) == "bad_words");
  bad = {};
  bad.no_repeat_ngram_size = 1;
  CHECK(refused(bad) == "no_repeat_ngram_size");
}

TEST_CASE("presets: a service refuses a preset that it does not have, and serves one that it has") {
  service_fixture f("rate=5000,prefill=100000000", [](service_options& o) { o.presets = two_presets(); });
  f.load();
  CHECK(f.service->presets().size() == 2);
  auto r = ask("hi", 3);
  r.preset = "poem";
  const auto no = f.submit(std::move(r));
  f.run_to_end(no);
  CHECK(no->state() == phase::refused);
  auto known = ask("hi", 3);
  known.preset = "story";
  const auto yes = f.submit(std::move(known));
  f.run_to_end(yes);
  CHECK(yes->state() == phase::done);
}

}  // namespace weir::tests::presets_test
