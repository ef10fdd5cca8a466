#include "core/json_line.h"

#include <catch2/catch.hpp>

#include <boost/json/parse.hpp>
#include <limits>

namespace weir::tests::json_line_test {

using core::json_line;
using core::rounded_time;

TEST_CASE("numbers are written as people write them, and everything else as JSON has it") {
  const boost::json::value v{{"queue_ms", 0.363},
                             {"whole", 41.0},
                             {"tiny", 1e-7},
                             {"n", 7},
                             {"big", -1.5e300},
                             {"text", "a\"\n"},
                             {"no", nullptr},
                             {"yes", true},
                             {"list", {1, 2.5, nullptr}},
                             {"none", boost::json::object()}};
  CHECK(
      json_line(v) ==
      R"({"queue_ms":0.363,"whole":41,"tiny":1e-07,"n":7,"big":-1.5e+300,"text":"a\"\n","no":null,"yes":true,)"
      R"("list":[1,2.5,null],"none":{}})");
  CHECK(boost::json::parse(json_line(v)).at("big").as_double() == -1.5e300);
}

TEST_CASE("a number that is not finite is null, and times have three decimals") {
  CHECK(json_line(std::numeric_limits<double>::infinity()) == "null");
  CHECK(json_line(rounded_time(0.36251)) == "0.363");
  CHECK(json_line(rounded_time(12.000049)) == "12");
}

}  // namespace weir::tests::json_line_test
