#include "actors/device_watch.h"

#include <catch2/catch.hpp>

namespace weir::tests::device_watch_test {

using namespace weir::actors;
using weir::kernels::device_state;

namespace {

device_state healthy() {
  device_state s;
  s.clock_mhz = 1980;
  s.most_clock_mhz = 1980;
  s.celsius = 45;
  s.held_by_heat = s.held_by_power = false;
  s.others = 0;
  return s;
}

}  // namespace

TEST_CASE("a device's state is a line for people") {
  device_state s = healthy();
  CHECK(actors::text_of(s) == "1980 of 1980 MHz, 45 °C; no other process on it");
  s.clock_mhz = 1410;
  s.held_by_heat = true;
  s.others = 2;
  s.others_bytes = 1u << 30;
  CHECK(actors::text_of(s) ==
        "1410 of 1980 MHz, held down by heat, 45 °C; 2 other processes on it with 1024 MiB");
  s.others = 1;
  s.others_bytes.reset();
  s.held_by_heat = false;
  s.held_by_power = true;
  CHECK(actors::text_of(s) == "1410 of 1980 MHz, held down by power, 45 °C; 1 other process on it");
  CHECK(actors::text_of(device_state{}) == "? MHz; other processes on it are not known");
  s.why_unknown = "no library";
  CHECK(actors::text_of(s) == "its clock and its neighbours are not known: no library");
}

TEST_CASE("a line is due at first, and when heat, power or neighbours change, not with every degree") {
  device_watch w;
  device_state s = healthy();
  CHECK(w.tick(s)->slower == false);
  s.celsius = 60;
  s.clock_mhz = 1700;
  CHECK(!w.tick(s));
  s.held_by_heat = true;
  CHECK(w.tick(s)->slower == true);
  CHECK(!w.tick(s));
  s.held_by_heat = false;
  CHECK(w.tick(s)->slower == false);
  s.others = 1;
  CHECK(w.tick(s)->slower == true);
  s.others = 0;
  s.held_by_power = true;
  CHECK(w.tick(s)->slower == true);
}

}  // namespace weir::tests::device_watch_test
