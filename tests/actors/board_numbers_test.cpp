// How busy an engine is: from its worker's admission over a board to a gateway's admission, and to pick().
#include "actors/fleet/board_numbers.h"

#include <catch2/catch.hpp>

namespace weir::tests::board_numbers_test {

using actors::admission_control;

TEST_CASE("board numbers: a gateway knows the jobs of others and its own, each once") {
  admission_control worker(4, {}), gateway(4, {});
  for (const std::uint32_t tokens : {100u, 200u, 3000u}) REQUIRE(worker.admit("m", tokens).has_value());
  worker.set_pace({.places = 4, .prompt_tokens_per_s = 1000, .tokens_per_s = 50});
  REQUIRE(gateway.admit("m", 200).has_value());  // it is one of these three
  core::fleet::board_model b;
  actors::fleet::write_numbers(worker, b);
  CHECK(b.jobs == 3);
  CHECK(b.prompts == 3);
  CHECK(b.prompt_tokens == 3300);
  actors::fleet::take_numbers(b, 1, gateway);
  auto seen = gateway.load(7, 64);
  CHECK(seen.name == 7);
  CHECK(seen.known == 64);
  CHECK(seen.jobs == 3);
  CHECK(seen.seats == 4);
  CHECK(seen.prompts == 3);
  CHECK(seen.prompt_tokens == 3300);
  CHECK(seen.prompt_tokens_per_s == 1000);
  CHECK(seen.wait == core::duration::zero());  // there is a seat
  gateway.prompt_done(200);
  seen = gateway.load(7, 0);
  CHECK(seen.prompts == 2);
  CHECK(seen.prompt_tokens == 3100);
  CHECK(seen.jobs == 3);
}

TEST_CASE("board numbers: a job without a prompt counts as none") {
  admission_control a(4, {});
  REQUIRE(a.admit("m", 0).has_value());
  CHECK(a.prompts() == 0);
  a.prompt_done(0);
  CHECK(a.prompts() == 0);
  CHECK(a.load(1, 0).jobs == 1);
}

}  // namespace weir::tests::board_numbers_test
