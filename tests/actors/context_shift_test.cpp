// What of a prompt stays in a context that shifts, and which requests may ask for it.
#include <catch2/catch.hpp>

#include "actors/make_job.h"
#include "tests/actors/made_job.h"
#include "tests/actors/service_fixture.h"

namespace weir::tests::context_shift_test {

using namespace weir::actors;

namespace {

struct shift_model : served_model {
  explicit shift_model(std::shared_ptr<const core::chat_template> t = core::chat_template::chatml()) {
    name = "m";
    info.vocab_size = 1000;
    context = 4096;
    tokenizer = core::make_sim_tokenizer();
    chat = std::move(t);
    max_tokens_default = 55;
  }
};

request shifting(prompt_input input) {
  request r;
  r.input = std::move(input);
  r.shifts = true;
  return r;
}

prompt_input said(std::initializer_list<std::pair<const char*, const char*>> messages) {
  core::conversation c;
  for (const auto& [role, content] : messages) c.messages.push_back({{"role", role}, {"content", content}});
  return c;
}

// The text of the tokens that stay.
std::string kept(const prompt_input& input, const served_model& m) {
  const auto j = made(shifting(input), m);
  REQUIRE(j.has_value());
  CHECK(j->shifts);
  REQUIRE(j->kept <= j->prompt.size());
  return {j->prompt.begin(), j->prompt.begin() + j->kept};  // each id of a simulated prompt is its byte
}

core::error refused(const request& r, const served_model& m) {
  const auto j = made(r, m);
  REQUIRE_FALSE(j.has_value());
  return j.error();
}

}  // namespace

TEST_CASE("context shift: the leading messages of system stay, as the template shows them") {
  const shift_model m;
  CHECK(kept(said({{"system", "Be brief."}, {"user", "hi"}}), m) ==
        "<|im_start|>system\nBe brief.<|im_end|>\n");
  CHECK(kept(said({{"system", "Be brief."}, {"user", "Be brief."}, {"assistant", "y"}, {"user", "z"}}), m) ==
        "<|im_start|>system\nBe brief.<|im_end|>\n");
  CHECK(kept(said({{"user", "hi"}, {"assistant", "a"}, {"user", "b"}}), m).empty());
  CHECK(kept(said({{"system", "Be brief."}}), m) == "<|im_start|>system\nBe brief.<|im_end|>\n");
}

TEST_CASE("context shift: of a system message in the user's turn its text stays") {
  const shift_model m(core::chat_template::from_source(
      "{% if messages[0].role == 'system' %}{% set first = messages[0].content %}{% set rest = messages[1:] "
      "%}"
      "{% else %}{% set rest = messages %}{% endif %}"
      "{% if rest[0].role != 'user' %}{{ raise_exception('a user speaks first') }}{% endif %}"
      "[INST] {{ first | trim }}\n\n{% for m in rest %}{{ m.content }}{% endfor %} [/INST]"));
  CHECK(kept(said({{"system", " Be brief. "}, {"user", "hi"}}), m) == "[INST] Be brief.");
}

TEST_CASE("context shift: of a raw prompt and of ids nothing but a BOS token stays") {
  const shift_model m;
  CHECK(kept(std::string("Once upon a time"), m).empty());
  const auto bos = m.tokenizer->bos();
  if (!bos) return;
  const auto j = made(shifting(prompt_ids{*bos, 'a', 'b'}), m);
  REQUIRE(j.has_value());
  CHECK(j->kept == 1);
}

TEST_CASE("context shift: where it cannot work it is refused by name") {
  shift_model m;
  auto r = shifting(std::string("hi"));
  r.prompt_logprobs = 1;
  const auto scored = refused(r, m);
  CHECK(scored.param == "context_overflow");
  CHECK_THAT(scored.message, Catch::Contains("does not go with prompt_logprobs"));
  r = shifting(std::string("hi"));
  r.max_tokens = (1 << 20) + 1;
  CHECK(refused(r, m).param == "max_tokens");
  r.max_tokens = 1 << 20;
  CHECK(made(r, m)->max_tokens == 1 << 20);
  m.context = 127;
  const auto small = refused(shifting(std::string("hi")), m);
  CHECK(small.code == core::errc::invalid_param);
  CHECK(small.param == "context_overflow");
}

TEST_CASE("context shift: a service goes on where the context is full, and says how often") {
  service_fixture f("rate=5000,prefill=100000000", [](service_options& o) { o.owner.context = 256; });
  f.load();
  auto r = ask("hello", 1000);
  r.sampling.seed = 5;
  const auto ends = f.submit(r);
  r.shifts = true;
  const auto goes_on = f.submit(std::move(r));
  f.run_to_end(ends);
  f.run_to_end(goes_on);
  REQUIRE(ends->state() == phase::done);
  CHECK(ends->ended().reason == core::finish_reason::length);
  CHECK(ends->ended().output_tokens == 251);
  CHECK(ends->ended().shifts == 0);
  REQUIRE(goes_on->state() == phase::done);
  CHECK(goes_on->ended().output_tokens == 1000);
  CHECK(goes_on->ended().shifts == 6);  // behind 251 tokens, then each 128
  CHECK(goes_on->ended().reason == core::finish_reason::length);
}

}  // namespace weir::tests::context_shift_test
