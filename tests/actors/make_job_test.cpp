#include "actors/make_job.h"

#include <catch2/catch.hpp>
#include <functional>
#include <numeric>

#include "tests/actors/made_job.h"

namespace weir::tests::make_job_test {

using namespace weir::actors;

namespace {

request text(std::string prompt) {
  request r;
  r.input = std::move(prompt);
  return r;
}

}  // namespace

TEST_CASE("what a request leaves open is the model's default, else neutral") {
  sim_served m;
  auto j = made(text("hi"), m);
  REQUIRE(j.has_value());
  CHECK(j->prompt == std::vector<core::token_id>{'h', 'i'});
  CHECK(j->max_tokens == 55);
  CHECK(j->sampling.temperature == 1.0f);
  CHECK(j->sampling.repetition_penalty == 1.0f);
  m.defaults.temperature = 0.6f;
  m.defaults.top_k = 20;
  auto r = text("hi");
  r.sampling.top_k = 5;
  j = made(r, m);
  REQUIRE(j.has_value());
  CHECK(j->sampling.temperature == 0.6f);
  CHECK(j->sampling.top_k == 5);
}

TEST_CASE("without a seed two jobs draw differently") {
  const sim_served m;
  CHECK(made(text("hi"), m)->sampling.seed != made(text("hi"), m)->sampling.seed);
}

TEST_CASE("a value out of its range is refused, naming the field") {
  const sim_served m;
  const std::vector<std::pair<std::string, std::function<void(request&)>>> bad = {
      {"temperature", [](auto& r) { r.sampling.temperature = 2.1; }},
      {"temperature", [](auto& r) { r.sampling.temperature = -0.1; }},
      {"top_p", [](auto& r) { r.sampling.top_p = -0.1; }},
      {"top_p", [](auto& r) { r.sampling.top_p = 1.01; }},
      {"top_k", [](auto& r) { r.sampling.top_k = -2; }},
      {"min_p", [](auto& r) { r.sampling.min_p = 1.5; }},
      {"top_n_sigma", [](auto& r) { r.sampling.top_n_sigma = -1.5; }},
      {"top_a", [](auto& r) { r.sampling.top_a = 1.1; }},
      {"typical_p", [](auto& r) { r.sampling.typical_p = -0.1; }},
      {"tfs", [](auto& r) { r.sampling.tfs = 1.1; }},
      {"xtc_probability", [](auto& r) { r.sampling.xtc_probability = 1.1; }},
      {"xtc_threshold", [](auto& r) { r.sampling.xtc_threshold = -0.1; }},
      {"dynatemp_range", [](auto& r) { r.sampling.dynatemp_range = 2.1; }},
      {"dynatemp_exponent", [](auto& r) { r.sampling.dynatemp_exponent = 0; }},
      {"smoothing_factor", [](auto& r) { r.sampling.smoothing_factor = -1; }},
      {"smoothing_curve", [](auto& r) { r.sampling.smoothing_curve = 0; }},
      {"repetition_range", [](auto& r) { r.sampling.repetition_range = -2; }},
      {"repetition_decay", [](auto& r) { r.sampling.repetition_decay = -2; }},
      {"disallow_tokens",
       [](auto& r) {
         r.sampling.disallow_tokens = {1, 1000};
       }},
      {"disallow_tokens", [](auto& r) { r.sampling.disallow_tokens = {-1}; }},
      {"allowed_token_ids", [](auto& r) { r.sampling.allowed_token_ids = {1000}; }},
      {"smoothing_curve", [](auto& r) { r.sampling.smoothing_curve = 0.9; }},
      {"no_repeat_ngram_size", [](auto& r) { r.sampling.no_repeat_ngram_size = 1; }},
      {"no_repeat_ngram_size", [](auto& r) { r.sampling.no_repeat_ngram_size = -1; }},
      {"bad_words",
       [](auto& r) {
         r.sampling.bad_words = {"x", ""};
       }},
      {"bad_words", [](auto& r) { r.sampling.bad_words = {std::vector<std::int64_t>{}}; }},
      {"bad_words",
       [](auto& r) {
         r.sampling.bad_words = {std::vector<std::int64_t>{1, 1000}};
       }},
      {"bad_words", [](auto& r) { r.sampling.bad_words.assign(257, "x"); }},
      {"mirostat_mode", [](auto& r) { r.sampling.mirostat_mode = 3; }},
      {"mirostat_tau", [](auto& r) { r.sampling.mirostat_tau = 21; }},
      {"mirostat_eta", [](auto& r) { r.sampling.mirostat_eta = -0.1; }},
      {"dry_multiplier", [](auto& r) { r.sampling.dry_multiplier = -1; }},
      {"dry_base", [](auto& r) { r.sampling.dry_base = 0.5; }},
      {"dry_allowed_length", [](auto& r) { r.sampling.dry_allowed_length = -1; }},
      {"dry_range", [](auto& r) { r.sampling.dry_range = -2; }},
      {"dry_sequence_breakers",
       [](auto& r) {
         r.sampling.dry_sequence_breakers = std::vector<std::string>{"a", ""};
       }},
      {"dry_sequence_breakers",
       [](auto& r) { r.sampling.dry_sequence_breakers.emplace(1, std::string(41, 'a')); }},
      {"repetition_penalty", [](auto& r) { r.sampling.repetition_penalty = 0; }},
      {"repetition_penalty", [](auto& r) { r.sampling.repetition_penalty = 0.009; }},
      {"max_repeats", [](auto& r) { r.max_repeats = 1; }},
      {"max_repeats", [](auto& r) { r.max_repeats = 1001; }},
      {"repetition_penalty", [](auto& r) { r.sampling.repetition_penalty = 2.5; }},
      {"frequency_penalty", [](auto& r) { r.sampling.frequency_penalty = 3; }},
      {"presence_penalty", [](auto& r) { r.sampling.presence_penalty = -3; }},
      {"max_tokens", [](auto& r) { r.max_tokens = 0; }},
      {"min_tokens", [](auto& r) { r.min_tokens = -1; }},
      {"min_tokens", [](auto& r) { r.min_tokens = 56; }},  // the model's own max_tokens is 55
      {"min_tokens", [](auto& r) { r.max_tokens = 5, r.min_tokens = 6; }},
      {"deadline_ms", [](auto& r) { r.deadline = std::chrono::milliseconds(0); }},
      {"deadline_ms", [](auto& r) { r.deadline = std::chrono::milliseconds(86'400'001); }},
      {"deadline_ms", [](auto& r) { r.deadline = std::chrono::milliseconds::max(); }},
      {"cache_salt", [](auto& r) { r.cache_salt.assign(257, 's'); }},
      {"stop_token_ids", [](auto& r) { r.stop_token_ids = {1000}; }},
      {"stop_token_ids", [](auto& r) { r.stop_token_ids.resize(1001), r.stop_token_ids.back() = -1; }},
      {"stop", [](auto& r) { r.stop = {""}; }},
      {"stop", [](auto& r) { r.stop.assign(65, "x"); }},
      {"banned_strings",
       [](auto& r) {
         r.banned_strings = {"a", ""};
       }},
      {"banned_strings", [](auto& r) { r.banned_strings.emplace(1025, "x"); }},
      {"banned_strings", [](auto& r) { r.banned_strings.emplace(1, std::string(1025, 'x')); }},
      {"banned_strings", [](auto& r) { r.banned_strings.emplace(65, std::string(1024, 'x')); }},
      {"stop_sequences", [](auto& r) { r.stop = {""}, r.stop_param = "stop_sequences"; }},
      {"stop_sequences", [](auto& r) { r.stop.assign(65, "x"), r.stop_param = "stop_sequences"; }},
      {"logit_bias",
       [](auto& r) {
         r.sampling.logit_bias = {{1000, 1.0}};
       }},
      {"logit_bias",
       [](auto& r) {
         r.sampling.logit_bias = {{1, 101.0}};
       }},
      {"input",
       [](auto& r) {
         r.input = prompt_ids{5, 1000};
       }},
      {"input", [](auto& r) { r.input = prompt_ids{-1}; }},
      {"input", [](auto& r) { r.input = std::string(); }},
      {"input", [](auto& r) { r.input = prompt_ids{}; }},
  };
  for (const auto& [field, spoil] : bad) {
    auto r = text("hi");
    spoil(r);
    const auto j = made(r, m);
    INFO(field);
    REQUIRE_FALSE(j.has_value());
    CHECK(j.error().code == core::errc::invalid_param);
    CHECK(j.error().param == field);
    CHECK(j.error().message.find(field) != std::string::npos);
  }
}

TEST_CASE("lists are bounded by the different tokens that they name") {
  sim_served m;
  m.info.vocab_size = 5000;
  auto r = text("hi");
  r.stop_token_ids.assign(250'000, 7);
  auto j = made(r, m);
  REQUIRE(j.has_value());
  CHECK(j->stop_token_ids == core::token_set{7});
  r.stop_token_ids.resize(1024);
  std::iota(r.stop_token_ids.begin(), r.stop_token_ids.end(), 100);
  for (int i = 0; i < 1024; ++i) r.sampling.logit_bias.emplace_back(i, -100.0);
  CHECK(made(r, m).has_value());
  SECTION("stop ids") {
    r.stop_token_ids.push_back(1);
    j = made(r, m);
    REQUIRE_FALSE(j.has_value());
    CHECK(j.error().param == "stop_token_ids");
    CHECK(j.error().message == "stop_token_ids has 1025 different tokens; at most 1024 are taken");
  }
  SECTION("biases") {
    for (int i = 1024; i < 100'000; ++i) r.sampling.logit_bias.emplace_back(i % 5000, 1.0);
    j = made(r, m);
    REQUIRE_FALSE(j.has_value());
    CHECK(j.error().param == "logit_bias");
    CHECK(j.error().message == "logit_bias has 100000 tokens; at most 1024 are taken");
  }
}

TEST_CASE("a request whose stop ids are the whole vocabulary may not forbid them by min_tokens") {
  sim_served m;
  m.info.vocab_size = GENERATE(1000u, 4096u);
  m.info.stop_ids = {3, 70000};  // a model's files may name ids that it has no rows for
  auto r = text("hi");
  for (std::int64_t id = 0; id < std::int64_t{m.info.vocab_size}; ++id)
    if (id != 3) r.stop_token_ids.push_back(id);
  r.min_tokens = 1;
  const auto j = made(r, m);
  REQUIRE_FALSE(j.has_value());
  CHECK(j.error().code == core::errc::invalid_param);
  CHECK_THAT(j.error().message, Catch::Contains("min_tokens") && Catch::Contains("stop_token_ids"));
  r.stop_token_ids.resize(900);
  CHECK(made(r, m).has_value());
}

TEST_CASE("a job has the model's own stop ids beside its own, but where it ignores them") {
  sim_served m;
  m.info.stop_ids = {7};
  auto r = text("hi");
  CHECK(made(r, m)->stop_token_ids.ids().data() == m.info.stop_ids.ids().data());
  r.stop_token_ids = {9, 5, 9};
  CHECK(made(r, m)->stop_token_ids == core::token_set{5, 7, 9});
  r.ignore_eos = true;
  CHECK(made(r, m)->stop_token_ids == core::token_set{5, 9});
}

TEST_CASE("bad words of one token are forbidden tokens, longer ones are kept with their lengths") {
  sim_served m;  // a byte is a token
  auto r = text("hi");
  r.sampling.disallow_tokens = {9};
  r.sampling.bad_words = {"x", std::vector<std::int64_t>{5, 6, 7}, std::vector<std::int64_t>{8}};
  const auto j = made(r, m);
  REQUIRE(j.has_value());
  CHECK(j->sampling.disallow_tokens == core::token_set{8, 9, 'x'});
  CHECK(j->sampling.bad_words == std::vector<core::token_id>{2, ' ', 'x', 3, 5, 6, 7});
}

TEST_CASE("DRY's breakers are tokens that have them, and tokens that begin them") {
  sim_served m;  // bytes in a prompt; the text of token i is "w%03d "
  auto r = text("hi");
  r.sampling.dry_sequence_breakers.emplace(1, "w00");
  CHECK_FALSE(made(r, m)->sampling.dry_sequence_breakers);  // DRY is off
  r.sampling.dry_multiplier = 1;
  const auto first = made(r, m)->sampling.dry_sequence_breakers;
  REQUIRE(first);
  CHECK(first->single == core::token_set{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(first->longer.empty());
  CHECK(made(r, m)->sampling.dry_sequence_breakers == first);
  r.sampling.dry_sequence_breakers.emplace(1, "7 w");
  const auto longer = made(r, m)->sampling.dry_sequence_breakers;
  REQUIRE(longer->longer.size() == 1);
  CHECK(longer->single.empty());
  CHECK(longer->longer[0].heads.size() == 100);  // all that end with "7 "
  CHECK(longer->longer[0].heads.contains(997));
  CHECK(longer->longer[0].tail == std::vector<core::token_id>{'w'});
  r.sampling.dry_sequence_breakers.emplace();
  CHECK(made(r, m)->sampling.dry_sequence_breakers->single.empty());
}

TEST_CASE("lists of tokens are bounded") {
  sim_served m;
  m.info.vocab_size = 5000;
  auto r = text("hi");
  for (auto* list : {&r.sampling.disallow_tokens, &r.sampling.allowed_token_ids}) {
    for (std::int64_t id = 0; id < 1024; ++id) list->push_back(id);
    list->push_back(0);  // counted once
    CHECK(made(r, m).has_value());
    list->push_back(1024);
    CHECK_FALSE(made(r, m).has_value());
    list->clear();
  }
}

TEST_CASE("the edges of each range are taken") {
  const sim_served m;
  auto r = text("hi");
  r.sampling.temperature = 0;
  r.sampling.top_p = 1;
  r.sampling.top_k = 0;
  r.sampling.min_p = 1;
  r.sampling.repetition_penalty = GENERATE(0.01, 2.0);
  r.deadline = std::chrono::hours(24);
  r.min_tokens = 1;
  r.sampling.frequency_penalty = -2;
  r.sampling.presence_penalty = 2;
  r.max_tokens = 1;
  r.stop_token_ids = {0, 999};
  r.sampling.logit_bias = {{999, -100}};
  CHECK(made(r, m).has_value());
}

TEST_CASE("token healing takes the prompt's last token away, but not its only one") {
  sim_served m;
  request r;
  r.token_healing = true;
  r.input = prompt_ids{5, 6, 7};
  auto healed = made(r, m);
  REQUIRE(healed.has_value());
  CHECK(healed->prompt == std::vector<core::token_id>{5, 6});
  REQUIRE(healed->healing);
  CHECK(healed->healing->bytes == m.tokenizer->token_bytes(7));
  r.input = prompt_ids{5};
  auto whole = made(r, m);
  REQUIRE(whole.has_value());
  CHECK(whole->prompt.size() == 1);
  CHECK_FALSE(whole->healing);
  r.token_healing = false;
  r.input = prompt_ids{5, 6, 7};
  CHECK_FALSE(made(r, m)->healing);
}

TEST_CASE("a prompt must leave room for one token of the answer") {
  const sim_served m;
  const std::string longest(99, 'x'), too_long(100, 'x');
  CHECK(made(text(longest), m).has_value());
  const auto j = made(text(too_long), m);
  REQUIRE_FALSE(j.has_value());
  CHECK(j.error().code == core::errc::prompt_too_long);
  CHECK_THAT(j.error().message, Catch::Contains("prompt is too long: 100 tokens > 99 maximum"));
  CHECK_THAT(j.error().message, Catch::Contains("maximum context length is 100 tokens"));
}

TEST_CASE("a top_k of -1 is off, whatever the model's own is, and a top_p of 0 is greedy") {
  sim_served m;
  m.defaults.top_k = 20;
  auto r = text("hi");
  r.sampling.top_k = -1;
  CHECK(made(r, m)->sampling.top_k == 0);
  r.sampling.temperature = 1;
  r.sampling.top_p = 0;
  const auto j = made(r, m);
  REQUIRE(j.has_value());
  CHECK(j->sampling.temperature == 0);
  CHECK(j->sampling.top_p == 1);
}

}  // namespace weir::tests::make_job_test
