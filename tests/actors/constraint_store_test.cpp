// Constraints of requests: compiled once, bounded in time, given up when nobody waits, named in errors.
#include "actors/constraint_store.h"

#include <catch2/catch.hpp>
#include <string>

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

constraint_store store_with(core::duration step, core::duration most) {
  return {ascii(), {}, std::make_shared<running_clock>(step), most,
          std::make_shared<core::grammar::constraint_cache>()};
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
  const auto first = store.get(one, "regex", nullptr), again = store.get(one, "regex", nullptr);
  REQUIRE(first.has_value());
  CHECK(first->rules == again->rules);
  CHECK(store.get(other, "regex", nullptr)->rules != first->rules);
}

TEST_CASE("constraint store: an error names the client's field and the place") {
  auto store = store_with({}, {});
  for (int i = 0; i < 2; ++i) {  // the second answer is remembered
    const auto bad = store.get(
        {.what = kind::json_schema, .text = R"({"properties":{"a":{"$ref":"#/nowhere"}}})"}, "json_schema", nullptr);
    REQUIRE_FALSE(bad.has_value());
    CHECK(bad.error().param.starts_with("json_schema/properties/a"));
  }
}

TEST_CASE("constraint store: what is not enforced comes back as warnings, each time") {
  auto store = store_with({}, {});
  for (int i = 0; i < 2; ++i) {
    const auto relaxed =
        store.get({.what = kind::json_schema, .text = R"({"type":"string","format":"unheard-of"})"}, "s", nullptr);
    REQUIRE(relaxed.has_value());
    REQUIRE(relaxed->warnings);
    CHECK(relaxed->warnings->front().where == "/format");
  }
}

TEST_CASE("constraint store: compiling ends when its time is over, and is tried again") {
  auto slow = store_with(std::chrono::seconds(1), std::chrono::seconds(3));
  for (int i = 0; i < 2; ++i) {
    const auto late = slow.get(large(), "json_schema", nullptr);
    REQUIRE_FALSE(late.has_value());
    CHECK(late.error().code == core::errc::overloaded);
  }
  auto quick = store_with({}, std::chrono::seconds(3));
  CHECK(quick.get(large(), "json_schema", nullptr).has_value());
}

TEST_CASE("constraint store: compiling ends when nobody waits for it") {
  auto store = store_with({}, {});
  std::atomic<bool> gone{true};
  const auto nobody = store.get(large(), "json_schema", &gone);
  REQUIRE_FALSE(nobody.has_value());
  CHECK(nobody.error().code == core::errc::unavailable);
  CHECK(store.get(large(), "json_schema", nullptr).has_value());
}

}  // namespace weir::tests::constraint_store_test
