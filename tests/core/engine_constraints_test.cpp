// Constraints through the engine, in both loops: what is written fits, and a late mask delays no other job.
#include <regex>

#include "core/engine.h"
#include "tests/support/constraints.h"
#include "tests/support/engine_rig.h"

namespace weir::tests::engine_constraints_test {

using namespace weir::core;

namespace {

std::string text_of(const recording_sink& sink) {
  const auto words = letters(61);
  std::string out;
  for (const auto& t : sink.tokens) out += words->token_bytes(t.id);
  return out;
}

job fitted(const engine_rig& rig, std::uint64_t n, std::string_view regex, std::uint32_t max_tokens = 200) {
  job j = rig.job(n, max_tokens);
  j.constraint = fresh_constraint(regex, views_of(letters(61)));
  return j;
}

}  // namespace

TEST_CASE("the text of a job fits its constraint, and ends with stop where it is whole") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    CAPTURE(how == loop_kind::plain);
    engine_rig rig(small_config(), how);
    constexpr const char* regexes[] = {"[a-e]{7}", "(ab|ba){3}z", "x|yy|zzz", "[a-z]{2,5}(qq)+"};
    std::vector<std::shared_ptr<recording_sink>> sinks;
    for (std::uint64_t n = 0; n < 24; ++n) {
      auto j = fitted(rig, n, regexes[n % 4]);
      j.stop_token_ids = {60};
      if (n % 3 == 0) j.sampling.temperature = 0;
      if (n % 5 == 0) j.sampling.logit_bias = {{25, 90.0f}};
      if (n % 2) j.sampling.top_p = 0.5f;
      sinks.push_back(rig.submit(std::move(j)));
      rig.submit(rig.job(100 + n));  // a free one beside it
      rig.step();
    }
    rig.run();
    for (std::uint64_t n = 0; n < sinks.size(); ++n) {
      INFO(n << " " << text_of(*sinks[n]));
      CHECK(sinks[n]->end->reason == finish_reason::stop);
      CHECK(std::regex_match(text_of(*sinks[n]), std::regex(regexes[n % 4])));
    }
  }
}

TEST_CASE("a text that is whole ends without a token more, an empty one at once") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    engine_rig rig(small_config(), how);
    rig.toy->some_rows_unwanted = true;  // the empty text is found to be whole when its row is there
    const auto whole = rig.submit(fitted(rig, 1, "abc"));
    const auto nothing = rig.submit(fitted(rig, 2, ""));
    job with_pages = rig.job(5, 16, 40);
    with_pages.constraint = fresh_constraint("", views_of(letters(61)));
    const auto nothing_more = rig.submit(std::move(with_pages));
    const auto exact = rig.submit(fitted(rig, 3, "[a-z]{4}", 4));
    const auto cut = rig.submit(fitted(rig, 4, "[a-e]{40}", 4));
    rig.run();
    CHECK(text_of(*whole) == "abc");
    CHECK(whole->end->output_tokens == whole->tokens.size());
    CHECK(nothing->tokens.empty());
    CHECK(nothing_more->tokens.empty());
    CHECK(nothing->end->reason == finish_reason::stop);
    CHECK(exact->end->reason == finish_reason::stop);
    CHECK(cut->end->reason == finish_reason::length);
  }
}

TEST_CASE("stop ids may come only where the text may end, and not before min_tokens") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    engine_rig rig(small_config(), how);
    constexpr token_id ends = 60;
    std::size_t short_ones = 0;
    for (std::uint64_t n = 0; n < 20; ++n) {
      auto j = fitted(rig, n, "(ab)*", 60);
      j.stop_token_ids = {ends};
      j.sampling.logit_bias = {{ends, 2.0f}};
      if (n % 2) j.min_tokens = 8;
      const auto sink = rig.submit(std::move(j));
      rig.run();
      const auto text = text_of(*sink);
      INFO(text);
      CHECK(std::regex_match(text, std::regex("(ab)*a?")));
      if (sink->end->reason == finish_reason::stop) CHECK(text.size() % 2 == 0);
      if (n % 2) CHECK(sink->tokens.size() >= 8);
      if (sink->tokens.size() < 8) ++short_ones;
    }
    CHECK(short_ones > 2);
    // Where the constraint allows only the end, min_tokens does not count.
    auto j = fitted(rig, 99, "abc");
    j.stop_token_ids = {ends};
    j.min_tokens = 20;
    const auto sink = rig.submit(std::move(j));
    rig.run();
    CHECK(text_of(*sink) == "abc");
    CHECK(sink->end->reason == finish_reason::stop);
  }
}

TEST_CASE("a late mask keeps its own job alone waiting") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    CAPTURE(how == loop_kind::plain);
    const auto helpers = std::make_shared<lazy_helpers>();
    engine_rig rig(small_config(), letters(61), 4096, how, helpers);
    const auto slow = rig.submit(fitted(rig, 1, "[a-e]{30}"));
    const auto quick = rig.submit(rig.job(2, 30));
    while (!quick->end) {
      CHECK(slow->tokens.empty());
      rig.step();
    }
    CHECK(rig.engine->counts().late_masks > 20);
    rig.run();  // alone, its masks are waited for
    CHECK(slow->end->reason == finish_reason::stop);
    CHECK(text_of(*slow).size() == 30);

    engine_rig prompt_one(small_config(), how);
    const auto same = prompt_one.submit(fitted(prompt_one, 1, "[a-e]{30}"));
    prompt_one.run();
    CHECK(same->ids() == slow->ids());
  }
}

TEST_CASE("helpers without room are asked again, and the owner makes no mask") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    CAPTURE(how == loop_kind::plain);
    const auto helpers = std::make_shared<lazy_helpers>();
    helpers->room = 0;
    engine_rig rig(small_config(), letters(61), 4096, how, helpers);
    const auto constrained = rig.submit(fitted(rig, 1, "[a-e]{30}"));
    for (int i = 0; i < 20; ++i) rig.step();
    CHECK(helpers->refused > 5);
    const auto other = rig.submit(rig.job(2, 30));
    for (int i = 0; i < 100 && !other->end; ++i) rig.step();
    CHECK(other->end.has_value());
    CHECK(constrained->tokens.empty());
    helpers->room = 1;
    rig.run();
    CHECK(text_of(*constrained).size() == 30);

    engine_rig alone(small_config(), how);
    const auto same = alone.submit(fitted(alone, 1, "[a-e]{30}"));
    alone.run();
    CHECK(same->ids() == constrained->ids());
  }
}

namespace {

// Helpers that accept masks and never make them.
class stuck_helpers final : public grammar::mask_helpers {
 public:
  bool post(std::shared_ptr<grammar::job_mask>) noexcept override { return true; }
};

}  // namespace

TEST_CASE("a mask that takes long does not keep the owner from a job that comes meanwhile") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    CAPTURE(how == loop_kind::plain);
    engine_rig rig(small_config(), letters(61), 4096, how, std::make_shared<stuck_helpers>());
    const auto stuck = rig.submit(fitted(rig, 1, "[a-e]{30}"));
    for (int i = 0; i < 5; ++i) rig.step();
    const auto other = rig.submit(rig.job(2, 30));
    for (int i = 0; i < 100 && !other->end; ++i) rig.step();
    CHECK(other->end.has_value());
    CHECK(stuck->tokens.empty());
    CHECK(rig.engine->cancel(engine_rig::id(1)));
    rig.run();
  }
}

TEST_CASE("whether the last token ends the text is for helpers to find out, and holds nobody up") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    engine_rig free(small_config(), how);
    const auto whole = free.submit(fitted(free, 1, "[a-e]{9}"));
    free.run();
    const auto all = static_cast<std::uint32_t>(whole->tokens.size());
    for (const std::uint32_t most : {all, all - 1}) {
      CAPTURE(how == loop_kind::plain, most);
      const auto helpers = std::make_shared<lazy_helpers>();
      engine_rig rig(small_config(), letters(61), 4096, how, helpers);
      const auto cut = rig.submit(fitted(rig, 1, "[a-e]{9}", most));
      for (int i = 0; i < 100 && cut->tokens.size() < most; ++i) rig.step();
      CHECK(helpers->posted == most + 1);  // a mask for each token, and what the last one does
      const auto other = rig.submit(rig.job(2, 20));
      for (int i = 0; i < 100 && !other->end; ++i) rig.step();
      CHECK(other->end);
      CHECK_FALSE(cut->end);
      rig.run();
      REQUIRE(cut->end);
      CHECK(cut->tokens.size() == most);
      CHECK(cut->end->reason == (most == all ? finish_reason::stop : finish_reason::length));
    }
  }
}

TEST_CASE("the constraint of a job that has ended is for helpers to destroy") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    CAPTURE(how == loop_kind::plain);
    const auto helpers = std::make_shared<lazy_helpers>();
    engine_rig rig(small_config(), letters(61), 4096, how, helpers);
    std::vector<std::weak_ptr<grammar::constraint>> constraints;
    for (const std::uint64_t n : {1, 2}) {
      auto j = fitted(rig, n, "[a-e]{9}");
      constraints.push_back(j.constraint);
      rig.submit(std::move(j));
    }
    for (int i = 0; i < 3; ++i) rig.step();
    CHECK(rig.engine->cancel(engine_rig::id(2)));
    rig.run();
    CHECK(helpers->discarded.size() >= 1);
    CHECK_FALSE(constraints[0].expired());
    std::mt19937 random(1);
    for (int i = 0; i < 20; ++i) helpers->some(random);  // so that the mask of job 2 leaves the queue
    helpers->discarded.clear();
    for (const auto& c : constraints) CHECK(c.expired());
  }
}

TEST_CASE("a constraint that is given up ends its job with an error that says why") {
  engine_rig rig;
  job j = rig.job(1, 100);
  auto too_much = grammar::compile_regex("([a-z]{1,3}){1,100000}b");
  REQUIRE(too_much.has_value());
  auto made = grammar::constraint::make(std::move(*too_much), views_of(letters(61)));
  if (!made) return;  // refused before a job could have it
  j.constraint = *made;
  const auto sink = rig.submit(std::move(j));
  const auto other = rig.submit(rig.job(2));
  rig.run();
  CHECK(other->end->reason == finish_reason::length);
  REQUIRE(sink->end.has_value());
  if (sink->end->reason == finish_reason::error) CHECK_FALSE(sink->end->fault->message.empty());
}

namespace {

constexpr const char* mostly_forced = "abcdefghijklm(n|o)pqrstuvw(x|y)abababcdcd(a|b)zz";

struct run_of {
  std::vector<token_id> ids;
  ending end;
  engine_counts counts;
};

run_of run_alone(loop_kind how, job (*make)(const engine_rig&), std::shared_ptr<lazy_helpers> helpers = {}) {
  engine_rig rig(small_config(), letters(61), 4096, how, std::move(helpers));
  const auto sink = rig.submit(make(rig));
  rig.run();
  return {sink->ids(), *sink->end, rig.engine->counts()};
}

}  // namespace

TEST_CASE("forced tokens are computed together, and are the same in both loops and with late masks") {
  const auto forced = [](const engine_rig& rig) { return fitted(rig, 1, mostly_forced); };
  const auto drawn = [](const engine_rig& rig) {
    job j = fitted(rig, 1, mostly_forced);
    j.force = grammar::forcing::off;
    return j;
  };
  const auto plain = run_alone(loop_kind::plain, forced);
  CHECK(plain.end.reason == finish_reason::stop);
  CHECK(plain.counts.forced_tokens > plain.ids.size() / 2);
  CHECK(plain.counts.tokens == plain.ids.size());
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    CAPTURE(how == loop_kind::plain);
    const auto free_run = run_alone(how, drawn);
    CHECK(free_run.counts.forced_tokens == 0);
    CHECK(run_alone(how, forced).ids == plain.ids);
    CHECK(run_alone(how, forced).counts.steps < free_run.counts.steps / 2);
    CHECK(run_alone(how, forced, std::make_shared<lazy_helpers>()).ids == plain.ids);
  }
}

TEST_CASE("beside many sequences forced tokens are computed one a step, and are the same") {
  const auto forced = [](const engine_rig& rig) { return fitted(rig, 1, mostly_forced); };
  const auto alone = run_alone(loop_kind::plain, forced);
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    CAPTURE(how == loop_kind::plain);
    auto many = small_config();
    many.max_batch = 160;
    many.kv_pages = 2000;
    engine_rig rig(many, letters(61), 4096, how);
    rig.toy->some_rows_unwanted = true;  // tokens are found to be forced when their row is there
    for (std::uint64_t n = 0; n < 150; ++n) rig.submit(rig.job(100 + n, 400));
    while (rig.engine->counts().decoding < 150) rig.step();
    const auto sink = rig.submit(forced(rig));
    while (!sink->end) {
      const bool begun = sink->tokens.size() > 13;  // the first that is drawn: the prompt is computed
      const auto report = rig.step();
      if (begun) CHECK(report.rows <= report.sequences);
    }
    CHECK(sink->ids() == alone.ids);
    CHECK(rig.engine->counts().forced_tokens == alone.counts.forced_tokens);
  }
}

TEST_CASE("logprobs do not change what is forced") {
  const auto told = [](const engine_rig& rig) {
    job j = fitted(rig, 1, mostly_forced);
    j.top_logprobs = 1;
    return j;
  };
  const auto untold = [](const engine_rig& rig) { return fitted(rig, 1, mostly_forced); };
  for (const auto how : {loop_kind::plain, loop_kind::overlapped})
    CHECK(run_alone(how, told).ids == run_alone(how, untold).ids);
}

TEST_CASE("a forced token ends its job as a drawn one does") {
  const auto cut = [](const engine_rig& rig) { return fitted(rig, 1, "abcdefghijklm", 4); };
  const auto exact = [](const engine_rig& rig) { return fitted(rig, 1, "jkl(m|m)", 4); };
  const auto stopped = [](const engine_rig& rig) {
    job j = fitted(rig, 1, "jklmnopqrst");
    j.stop = {"mno"};
    return j;
  };
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    for (const bool late : {false, true}) {
      const auto helpers = [&] { return late ? std::make_shared<lazy_helpers>() : nullptr; };
      CAPTURE(how == loop_kind::plain, late);
      CHECK(run_alone(how, cut, helpers()).end.reason == finish_reason::length);
      CHECK(run_alone(how, cut, helpers()).ids.size() == 4);
      CHECK(run_alone(how, exact, helpers()).end.reason == finish_reason::stop);
      CHECK(run_alone(how, stopped, helpers()).end.reason == finish_reason::stop);
      CHECK(run_alone(how, stopped, helpers()).ids.size() == 3);
    }
  }
}

TEST_CASE("forced tokens beside other jobs change nothing for either") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    engine_rig rig(small_config(), letters(61), 4096, how, std::make_shared<lazy_helpers>());
    std::vector<std::shared_ptr<recording_sink>> sinks;
    for (std::uint64_t n = 0; n < 24; ++n)
      sinks.push_back(rig.submit(n % 2 ? fitted(rig, n, mostly_forced) : rig.job(n, 40)));
    rig.run();
    for (std::uint64_t n = 0; n < 24; ++n) {
      engine_rig alone(small_config(), how);
      CHECK(sinks[n]->ids() == alone.solo(n % 2 ? fitted(alone, n, mostly_forced) : alone.job(n, 40)));
    }
  }
}

}  // namespace weir::tests::engine_constraints_test
