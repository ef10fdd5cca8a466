#include "core/model/sim_script.h"

#include <catch2/catch.hpp>

#include "core/text/tokenizer/tokenizer.h"
#include "tests/support/constraints.h"
#include "tests/support/engine_rig.h"

namespace weir::tests::sim_script_test {

using namespace weir::core;

namespace {

std::shared_ptr<const sim_script> script_of(std::string_view text) {
  auto made = sim_script::parse(text, "f.jsonl");
  REQUIRE(made.has_value());
  return *made;
}

std::string script_fault(std::string_view text) {
  const auto made = sim_script::parse(text, "f.jsonl");
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().code == errc::invalid_param);
  CHECK(made.error().param == "device");
  return made.error().message;
}

std::vector<token_id> ids_of(std::string_view text) { return make_byte_tokenizer()->encode(text, {}); }

// An engine with a script, as fast as it goes.
struct scripted_rig : engine_rig {
  explicit scripted_rig(std::string_view script, engine_config c = small_config())
      : engine_rig(make_sim_model(*parse_sim_spec("rate=0,script=f"), {}, script_of(script)),
                   make_byte_tokenizer(), c) {}

  core::job question(std::uint64_t n, std::string_view text, std::uint32_t max_tokens = 300) const {
    auto j = engine_rig::job(n, max_tokens);
    j.prompt = ids_of(text);
    return j;
  }
  std::shared_ptr<recording_sink> ask(std::uint64_t n, std::string_view text,
                                      std::uint32_t max_tokens = 300) {
    return submit(question(n, text, max_tokens));
  }
};

std::string text_of(const recording_sink& s) {
  std::string out;
  for (const auto& t : s.tokens) out += make_byte_tokenizer()->token_bytes(t.id);
  return out;
}

constexpr std::string_view weather = R"({"when":"weather","say":"rain é"}
{"when":"news","say":"none"}

{"say":"pardon?"}
)";

}  // namespace

TEST_CASE("the first line of a script whose text stands in the prompt's end is the answer") {
  const auto s = script_of(weather);
  CHECK(s->answer(ids_of("the weather")) == "rain é");
  CHECK(s->answer(ids_of("news of the weather")) == "rain é");
  CHECK(s->answer(ids_of("news")) == "none");
  CHECK(s->answer(ids_of("")) == "pardon?");
  CHECK(s->answer(ids_of("news" + std::string(4092, 'x'))) == "none");
  CHECK(s->answer(ids_of("news" + std::string(4093, 'x'))) == "pardon?");
  CHECK(script_of("{\"when\":\"a\",\"say\":\"b\"}")->answer(ids_of("c")) == "");
  CHECK(script_of("")->answer(ids_of("c")) == "");
}

TEST_CASE("a script that is wrong is refused naming file and line") {
  using Catch::Contains;
  CHECK_THAT(script_fault("{\"say\":\"a\"}\nnonsense"), Contains("f.jsonl, line 2"));
  CHECK_THAT(script_fault("\n\n[1]"), Contains("line 3") && Contains("object"));
  CHECK_THAT(script_fault("{\"say\":\"a\",\"then\":\"b\"}"), Contains("line 1") && Contains("«then»"));
  CHECK_THAT(script_fault("{\"say\":5}"), Contains("say has to be a string"));
  CHECK_THAT(script_fault("{\"when\":null,\"say\":\"\"}"), Contains("when has to be a string"));
  CHECK_THAT(script_fault("{\"when\":\"a\"}"), Contains("say is missing"));
  CHECK_THAT(script_fault(std::string(sim_script_lines + 1, '\n')), Contains("10000 lines"));
  CHECK_THAT(script_fault(std::string(sim_script_bytes + 1, ' ')), Contains("4194304 bytes"));
  CHECK_THAT(sim_script::read("/no/such/file").error().message, Contains("script=/no/such/file"));
}

TEST_CASE("a sim's spec with a script, and rate 0 without a limit") {
  const auto spec = parse_sim_spec("rate=0,script=/tmp/a b.jsonl");
  REQUIRE(spec.has_value());
  CHECK(spec->script == "/tmp/a b.jsonl");
  CHECK(spec->rate == 0);
  CHECK(parse_sim_spec("script=x")->rate == 50);
  CHECK(parse_sim_spec("rate=0")->rate == 50);
  CHECK(parse_sim_spec("script=").error().param == "device");
}

TEST_CASE("a scripted sim says its answer and ends with stop, or with length where it is cut") {
  scripted_rig rig(weather);
  const auto whole = rig.ask(0, "what about the weather");
  const auto cut = rig.ask(1, "what about the weather", 4);
  const auto other = rig.ask(2, "hm");
  rig.run();
  CHECK(text_of(*whole) == "rain é");
  CHECK(whole->end->reason == finish_reason::stop);
  CHECK(text_of(*cut) == "rain");
  CHECK(cut->end->reason == finish_reason::length);
  CHECK(text_of(*other) == "pardon?");
}

TEST_CASE("an answer of a script is empty and ends at once where no line counts") {
  scripted_rig rig(R"({"when":"weather","say":"rain"})");
  const auto nothing = rig.ask(0, "hm");
  rig.run();
  CHECK(nothing->tokens.empty());
  CHECK(nothing->end->reason == finish_reason::stop);
}

TEST_CASE("a script answers prompts that come from the prefix cache, and jobs that are preempted") {
  auto c = small_config();
  c.kv_pages = 8;
  const std::string said(250, 'r');
  scripted_rig rig(R"({"when":"weather","say":")" + said + "\"}", c);
  const std::string prompt = "the weather " + std::string(150, 'x');
  rig.ask(0, prompt);
  rig.run();
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (std::uint64_t n = 1; n < 6; ++n) sinks.push_back(rig.ask(n, prompt, 300));
  rig.run(1000000);
  CHECK(rig.engine->counts().cached_tokens > 0);
  CHECK(rig.engine->counts().preemptions > 0);
  for (const auto& s : sinks) {
    CHECK(text_of(*s) == said);
    CHECK(s->end->reason == finish_reason::stop);
  }
}

TEST_CASE("a script under a constraint: the answer where it is allowed, else what comes next") {
  scripted_rig rig(R"({"say":"abzz"})");
  const auto under = [&](std::uint64_t n, std::string_view regex) {
    auto j = rig.question(n, "hm");
    j.constraint = fresh_constraint(regex, views_of(make_byte_tokenizer()));
    return rig.submit(std::move(j));
  };
  const auto fits = under(0, "[a-z]+");
  const auto differs = under(1, "[a-c]{4}");
  const auto goes_on = under(2, "[a-z]{4}[7-9]{2}");
  rig.run();
  CHECK(text_of(*fits) == "abzz");
  CHECK(fits->end->reason == finish_reason::stop);
  CHECK(text_of(*differs) == "abaa");  // behind z comes a, round the end of the vocabulary
  CHECK(text_of(*goes_on) == "abzz77");
}

}  // namespace weir::tests::sim_script_test
