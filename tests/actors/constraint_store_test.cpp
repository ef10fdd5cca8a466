// Constraints of requests: compiled once, bounded in time, given up when nobody waits, named in errors.
#include "actors/constraint_store.h"

#include <catch2/catch.hpp>
#include <future>
#include <string>
#include <thread>

#include "core/grammar/calls.h"
#include "tests/support/free_turn.h"
#include "tests/support/toy_tokenizer.h"

namespace weir::tests::constraint_store_test {

using namespace weir::actors;
using core::grammar::constraint_text;
using kind = constraint_text::kind;

namespace {

// A token for each printable character, and a few longer ones.
std::shared_ptr<const core::tokenizer> ascii() {
  std::vector<std::string> pieces{"12", "\":", "abc"};
  for (char c = ' '; c <= '~'; ++c) pieces.emplace_back(1, c);
  return std::make_shared<tests::toy_tokenizer>(std::move(pieces));
}

// A clock that moves on by `step` at every look.
class running_clock final : public core::clock {
 public:
  explicit running_clock(core::duration step) : step_(step) {}
  core::time_point now() const noexcept override { return at_ += step_; }

 private:
  const core::duration step_;
  mutable core::time_point at_{};
};

// A store, and turns by its clock.
class timed_store {
 public:
  timed_store(std::shared_ptr<const core::clock> time, core::duration most)
      : time_(time), store_(ascii(), {}, time, most, std::make_shared<core::grammar::constraint_cache>()) {}

  core::result<compiled_constraint> get(const constraint_text& text, const std::string& param) {
    free_turn at(*time_);
    return get(text, param, at);
  }
  core::result<compiled_constraint> get(const constraint_text& text, const std::string& param,
                                        core::turn& at) {
    auto got = store_.get(text, param, at, [] { FAIL("nobody else compiles"); });
    REQUIRE(got);
    return *got;
  }
  auto known(const constraint_text& text, const std::string& param) { return store_.known(text, param); }
  constraint_store& itself() { return store_; }

 private:
  const std::shared_ptr<const core::clock> time_;
  constraint_store store_;
};

timed_store store_with(core::duration step, core::duration most) {
  return {std::make_shared<running_clock>(step), most};
}

// A constraint that takes long to compile.
constraint_text large() {
  constraint_text c{.what = kind::json_schema, .text = R"({"properties":{"first":{"type":"string"})"};
  for (int i = 0; i < 500; ++i) c.text.append(R"(,"m)").append(std::to_string(i)).append(R"(":{"type":"number"})");
  c.text += "}}";
  return c;
}

}  // namespace

TEST_CASE("constraint store: an equal constraint is compiled once, another one apart") {
  auto store = store_with({}, {});
  const constraint_text one{.what = kind::regex, .text = "a+"}, other{.what = kind::regex, .text = "b+"};
  const auto first = store.get(one, "regex"), again = store.get(one, "regex");
  REQUIRE(first.has_value());
  CHECK(first->rules == again->rules);
  CHECK(store.get(other, "regex")->rules != first->rules);
}

TEST_CASE("constraint store: an error names the client's field and the place") {
  auto store = store_with({}, {});
  for (int i = 0; i < 2; ++i) {  // the second answer is remembered
    const auto bad = store.get(
        {.what = kind::json_schema, .text = R"({"properties":{"a":{"$ref":"#/nowhere"}}})"}, "json_schema");
    REQUIRE_FALSE(bad.has_value());
    CHECK(bad.error().param.starts_with("json_schema/properties/a"));
  }
}

TEST_CASE("constraint store: what is not enforced comes back as warnings, each time") {
  auto store = store_with({}, {});
  for (int i = 0; i < 2; ++i) {
    const auto relaxed =
        store.get({.what = kind::json_schema, .text = R"({"type":"string","format":"unheard-of"})"}, "s");
    REQUIRE(relaxed.has_value());
    REQUIRE(relaxed->warnings);
    CHECK(relaxed->warnings->front().where == "/format");
  }
}

TEST_CASE("constraint store: marks of an answer are the tokens of the model's vocabulary") {
  std::vector<std::string> pieces{"<tool_call>", "</tool_call>"};
  for (int b = 0; b < 256; ++b) pieces.emplace_back(1, static_cast<char>(b));
  const auto words = std::make_shared<const tests::toy_tokenizer>(std::move(pieces));
  const auto time = std::make_shared<running_clock>(core::duration());
  constraint_store store(words, {}, time, {}, std::make_shared<core::grammar::constraint_cache>());
  core::grammar::call_rules rules;
  rules.format = "hermes";
  rules.tools.how = core::tool_wishes::choice::required;
  auto& tool = rules.tools.tools.emplace_back();
  tool.name = "look";
  tool.strict = true;
  tool.param = "tools[0].function.parameters";
  const auto ask = [&] {
    constraint_text text{.what = kind::answer};
    text.answer = std::make_shared<const core::grammar::call_rules>(rules);
    free_turn at(*time);
    auto got = store.get(text, "", at, [] { FAIL("nobody else compiles"); });
    REQUIRE(got);
    return *got;
  };
  const auto made = ask();
  REQUIRE(made.has_value());
  const auto& over = *made->rules;
  CHECK(over.mask_known(over.start()) == nullptr);
  const auto* mask = made->rules->mask(over.start());
  REQUIRE(mask);
  CHECK(mask->ids() == std::vector<core::token_id>{0});
  CHECK(ask()->rules == made->rules);
  tool.parameters = R"({"properties":{"a":{"$ref":"#/nowhere"}}})";
  const auto bad = ask();
  REQUIRE_FALSE(bad.has_value());
  CHECK(bad.error().param == "tools[0].function.parameters/properties/a");
}

TEST_CASE("constraint store: compiling ends when its time is over, and is tried again") {
  auto slow = store_with(std::chrono::seconds(1), std::chrono::seconds(3));
  for (int i = 0; i < 2; ++i) {
    const auto late = slow.get(large(), "json_schema");
    REQUIRE_FALSE(late.has_value());
    CHECK(late.error().code == core::errc::overloaded);
  }
  auto quick = store_with({}, std::chrono::seconds(3));
  CHECK(quick.get(large(), "json_schema").has_value());
}

TEST_CASE("constraint store: compiling ends when nobody waits for it") {
  auto store = store_with({}, {});
  free_turn unwanted;
  unwanted.unwanted = true;
  const auto nobody = store.get(large(), "json_schema", unwanted);
  REQUIRE_FALSE(nobody.has_value());
  CHECK(nobody.error().code == core::errc::unavailable);
  CHECK(store.get(large(), "json_schema").has_value());
}

TEST_CASE("constraint store: who asks for what another compiles is not held up, and is told at the end") {
  auto store = store_with({}, {});
  int told = 0;
  const auto asked = [&] {
    free_turn mine;
    return store.itself().get(large(), "json_schema", mine, [&] { ++told; });
  };
  for (const bool given_up : {true, false}) {
    free_turn at;
    at.looked = [&] {
      if (at.looks == 1) CHECK_FALSE(asked());
      at.unwanted = given_up;
    };
    CHECK(store.get(large(), "json_schema", at).has_value() == !given_up);
    CHECK(told == (given_up ? 1 : 2));
  }
  CHECK(asked()->has_value());
  CHECK(told == 2);
}

namespace {

// A clock on which one thread, once it looks, waits until open().
class holding_clock final : public core::clock {
 public:
  core::time_point now() const noexcept override {
    if (std::this_thread::get_id() != holds_.load()) return {};
    if (!std::exchange(held_, true)) looked_.set_value();
    gate_.wait();
    return {};
  }
  void hold(std::thread::id who) { holds_ = who; }
  void wait_until_held() { looked_.get_future().wait(); }
  void open() { opener_.set_value(); }

 private:
  std::atomic<std::thread::id> holds_{};
  mutable bool held_ = false;
  mutable std::promise<void> looked_;
  std::promise<void> opener_;
  std::shared_future<void> gate_ = opener_.get_future().share();
};

}  // namespace

TEST_CASE("constraint store: what is compiled already waits for nobody who compiles, and neither do others") {
  const auto clock = std::make_shared<holding_clock>();
  timed_store store(clock, std::chrono::seconds(3));
  const constraint_text known{.what = kind::regex, .text = "a+"}, other{.what = kind::regex, .text = "b+"};
  REQUIRE(store.get(known, "regex").has_value());
  CHECK_FALSE(store.known(other, "regex"));
  std::promise<void> go;
  std::thread slow([&] {
    go.get_future().wait();
    CHECK(store.get(large(), "json_schema").has_value());
  });
  clock->hold(slow.get_id());
  go.set_value();
  clock->wait_until_held();
  CHECK(store.known(known, "regex")->has_value());
  CHECK(store.get(known, "regex").has_value());
  CHECK(store.get(other, "regex").has_value());
  clock->open();
  slow.join();
}

TEST_CASE("constraint store: a refusal for time is remembered, and costs no time again") {
  const auto clock = std::make_shared<running_clock>(std::chrono::milliseconds(10));
  timed_store store(clock, std::chrono::milliseconds(30));
  REQUIRE(store.get(large(), "json_schema").error().code == core::errc::overloaded);
  const auto before = clock->now();
  const auto again = store.get(large(), "json_schema");
  CHECK(again.error().code == core::errc::overloaded);
  CHECK(again.error().retry_after_ms > 9'000);
  CHECK(clock->now() - before == std::chrono::milliseconds(20));  // one look, for the answer that is known
}

}  // namespace weir::tests::constraint_store_test
