#include "core/sample/sequence_logprobs.h"

#include <catch2/catch.hpp>

namespace weir::tests::sequence_logprobs_test {

using namespace weir;

TEST_CASE("logprobs of an output leave as the sink takes its tokens, in order") {
  core::untaken_logprobs all;
  all.reserve(1000);
  for (int id = 0; id < 200; ++id) {  // more than it reserved
    kernels::draw_logprobs l;
    l.drawn.id = id;
    all.add(l);
  }
  all.take(150);
  REQUIRE(all.first(50).size() == 50);
  CHECK(all.first(50).front().drawn.id == 150);
  CHECK(all.first(50).back().drawn.id == 199);
  all.take(50);
  CHECK(all.first(0).empty());
}

TEST_CASE("logprobs of a prompt are told as far as they were scored, and none where nobody asked") {
  core::prompt_logprobs scored;
  CHECK(scored.count() == 0);
  CHECK(scored.all() == nullptr);
  scored.reserve(2);
  const auto told = scored.all();
  REQUIRE(told);
  kernels::scored_token t;
  t.rank = 3;
  scored.add(t);
  CHECK(scored.count() == 1);
  CHECK(told->front().rank == 3);
}

}  // namespace weir::tests::sequence_logprobs_test
