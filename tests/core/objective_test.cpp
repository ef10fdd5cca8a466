#include "core/objective.h"

#include <catch2/catch.hpp>

namespace weir::tests::objective_test {

using namespace weir::core;
using namespace std::chrono_literals;

TEST_CASE("an objective is two times, in any order and unit") {
  CHECK_FALSE(parse_objective("")->set());
  const auto o = parse_objective("ttft=1000,tpot=50");
  REQUIRE(o.has_value());
  CHECK(o->set());
  CHECK(o->ttft == 1000ms);
  CHECK(o->tpot == 50ms);
  const auto other = parse_objective("tpot = 7500us, ttft_ms=0.5 s");
  REQUIRE(other.has_value());
  CHECK(other->ttft == 500ms);
  CHECK(other->tpot == 7500us);
}

TEST_CASE("an objective that is wrong is refused naming the option and the part") {
  const struct {
    const char *text, *names;
  } bad[] = {{"ttft=1000", "tpot is missing"},
             {"tpot=50", "ttft is missing"},
             {"ttft=1000,itl=50", "'itl' is not ttft or tpot"},
             {"ttft=1000,tpot", "tpot needs a time"},
             {"ttft=1000,tpot=", "tpot needs a time"},
             {"ttft=0,tpot=50", "ttft needs a time"},
             {"ttft=-5,tpot=50", "ttft needs a time"},
             {"ttft=inf,tpot=50", "ttft needs a time"},
             {"ttft=nan,tpot=50", "ttft needs a time"},
             {"ttft=5m,tpot=50", "'5m'"},
             {"ttft=1000,,tpot=50", "'' is not"},
             {"ttft=1,ttft=2,tpot=50", "ttft stands there twice"},
             {"ttft=3601s,tpot=50", "ttft is over an hour"},
             {"1000,50", "'1000' is not"}};
  for (const auto& [text, names] : bad) {
    CAPTURE(text);
    const auto o = parse_objective(text);
    REQUIRE_FALSE(o.has_value());
    CHECK(o.error().code == errc::invalid_param);
    CHECK(o.error().param == "slo");
    CHECK_THAT(o.error().message, Catch::Contains("--slo") && Catch::Contains(names));
  }
}

}  // namespace weir::tests::objective_test
