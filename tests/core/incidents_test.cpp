#include "core/incidents.h"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

namespace weir::tests::incidents_test {

TEST_CASE("incidents: each is counted, and a place's 1st, 2nd, 4th, 8th … are logged") {
  std::vector<std::string> lines;
  core::incidents seen([&](std::string_view line) { lines.emplace_back(line); });
  for (int i = 0; i < 9; ++i) {
    CHECK_FALSE(core::contained(seen, "here", [] { throw std::runtime_error("no room"); }));
  }
  CHECK_FALSE(core::contained(seen, "there", [] { throw 7; }));
  CHECK(core::contained(seen, "there", [] {}));
  CHECK(seen.count() == 10);
  REQUIRE(lines.size() == 5);
  CHECK_THAT(lines[0], Catch::Contains("here: no room (incident 1 here)"));
  CHECK_THAT(lines[3], Catch::Contains("incident 8"));
  CHECK_THAT(lines[4], Catch::Contains("there: not a std::exception"));
}

TEST_CASE("incidents: a log that throws is survived") {
  core::incidents seen([](std::string_view) { throw std::bad_alloc(); });
  CHECK_FALSE(core::contained(seen, "here", [] { throw std::bad_alloc(); }));
  CHECK(seen.count() == 1);
}

}  // namespace weir::tests::incidents_test
