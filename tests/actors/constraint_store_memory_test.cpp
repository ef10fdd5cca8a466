// Memory that runs out while a constraint is compiled: one clear answer, and the store is as it was.
#include <catch2/catch.hpp>
#include <optional>

#include "actors/constraint_store.h"
#include "tests/support/byte_views.h"
#include "tests/support/free_turn.h"
#include "tests/support/memory_shortage.h"

namespace weir::tests::constraint_store_memory_test {

using core::grammar::constraint_text;

namespace {

constraint_text schema() {
  return {
      .what = constraint_text::kind::json_schema,
      .text = R"({"properties":{"a":{"type":"integer","maximum":99},"b":{"pattern":"^x+$","format":"no"}}})"};
}

actors::constraint_store make_store() {
  std::vector<std::string> bytes;
  for (int b = 0; b < 128; ++b) bytes.emplace_back(1, static_cast<char>(b));
  return {std::make_shared<tests::toy_tokenizer>(std::move(bytes)),
          {},
          std::make_shared<core::system_clock>(),
          {},
          std::make_shared<core::grammar::constraint_cache>()};
}

// What a client is told: the store's answer, or nothing where the exception goes to the caller.
std::optional<core::result<actors::compiled_constraint>> ask(actors::constraint_store& s) {
  try {
    tests::free_turn at;
    return s.get(schema(), "json_schema", at, [] {});
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("memory: a constraint that cannot be compiled is one clear error, and is compiled the next time") {
  auto first = make_store();
  REQUIRE(ask(first)->has_value());
  unsigned told = 0;
  bool failed = true;
  for (std::uint64_t after = 0; failed; after += after < 300 ? 1 : 7) {
    for (const std::uint64_t count : {1, 3}) {  // the error itself needs memory, too
      CAPTURE(after, count);
      auto store = make_store();
      const auto before = tests::failed_allocations();
      std::optional<core::result<actors::compiled_constraint>> answer;
      {
        const tests::allocations_fail now(after, count);
        answer = ask(store);
      }
      failed = tests::failed_allocations() > before;
      if (answer && answer->has_error()) {
        ++told;
        REQUIRE(answer->error().code == core::errc::overloaded);
        REQUIRE(answer->error().message == "there is no memory for this constraint now");
      }
      const auto again = ask(store);
      REQUIRE(again);
      REQUIRE(again->has_value());
      REQUIRE((*again)->warnings);
    }
  }
  CHECK(told > 300);
}

}  // namespace weir::tests::constraint_store_memory_test
