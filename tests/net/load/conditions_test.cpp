#include "net/load/conditions.h"

#include <catch2/catch.hpp>

#include "net/load/figures.h"

namespace weir::tests::conditions_test {

using namespace weir::load;

TEST_CASE("objectives are times for vLLM's three names") {
  const auto o = parse_slo("ttft=200ms,tpot=50,e2el=2s");
  REQUIRE(o.has_value());
  CHECK(o->ttft == 200);
  CHECK(o->tpot == 50);
  CHECK(o->e2el == 2000);
  CHECK(std::isinf(parse_slo("ttft=1")->e2el));
  for (const char* bad :
       {"ttft", "ttft=", "itl=5", "ttft=-5", "ttft=0", "ttft=5kg", "ttft=1,,tpot=2", "=5"}) {
    CAPTURE(bad);
    const auto r = parse_slo(bad);
    REQUIRE(!r);
    CHECK(r.error().param == "slo");
  }
}

TEST_CASE("a condition names a figure, a statistic and a limit in the figure's unit") {
  const auto c = parse_condition("added_jitter_p99<5ms");
  REQUIRE(c.has_value());
  CHECK(c->measure == "added_jitter_ms");
  CHECK(c->statistic == "p99");
  CHECK(c->limit == 5);
  CHECK(c->holds(4.999));
  CHECK(!c->holds(5));
  const auto spaced = parse_condition("itl_ms_p99.9 <= 1 s");
  REQUIRE(spaced.has_value());
  CHECK(spaced->measure == "itl_ms");
  CHECK(spaced->statistic == "p99.9");
  CHECK(spaced->limit == 1000);
  CHECK(spaced->holds(1000));
  const auto share = parse_condition("coalesced_frac<=1%");
  REQUIRE(share.has_value());
  CHECK(share->statistic.empty());
  CHECK(share->limit == 0.01);
  CHECK(parse_condition("gaps==0")->holds(0));
  CHECK(!parse_condition("gaps==0")->holds(1));
  CHECK(parse_condition("output_throughput>3000")->limit == 3000);
  CHECK(parse_condition("output_throughput>=3e3")->holds(3000));
  CHECK(parse_condition("ttft_p50<500us")->limit == 0.5);
  CHECK(parse_condition("itl_per_token_max<40ms")->measure == "itl_per_token_ms");
  CHECK(parse_condition("gap_max_p99<40ms")->measure == "gap_max_ms");
}

TEST_CASE("a condition that no report could judge is refused before anything is sent") {
  for (const char* bad : {"", "p99", "jitter<5", "ttft<5ms", "gaps_p99<5", "ttft_p98<5", "added_jitter_p99=5",
                          "gaps==", "gaps==0%", "coalesced_frac<1ms", "ttft_p99<five", "<5",
                          "ttft_p99<5 ms ms", "ttft_p99<inf"}) {
    CAPTURE(bad);
    const auto r = parse_condition(bad);
    REQUIRE(!r);
    CHECK(r.error().param == "assert");
    CHECK_THAT(r.error().message, Catch::Contains(bad));
  }
}

TEST_CASE("every figure has a name of its own and says what it is") {
  for (std::size_t i = 0; i < figure_count; ++i) {
    CAPTURE(figure_table[i].name);
    CHECK(find_figure(figure_table[i].name) == figure{i});
    CHECK(!figure_table[i].what.empty());
    CHECK((figure_table[i].unit > 0) == (i < distribution_count));
  }
}

}  // namespace weir::tests::conditions_test
