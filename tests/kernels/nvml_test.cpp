// What the management library says of a device, by a library of the test's own.
#include "kernels/cuda/device/nvml.h"

#include <catch2/catch.hpp>

namespace weir::tests::nvml_test {

using namespace weir::kernels;

namespace {

constexpr unsigned self = 42;

nvml_library good() {
  nvml_library l;
  l.by_bus = [](const char* bus, void**) { return std::string_view(bus) == "0000:01:00.0" ? 0 : 6; };
  l.clock = [](void*, int which, unsigned* mhz) { return *mhz = which == 1 ? 1410 : 0, 0; };
  l.most_clock = [](void*, int which, unsigned* mhz) { return *mhz = which == 1 ? 1980 : 0, 0; };
  l.temperature = [](void*, int, unsigned* celsius) { return *celsius = 61, 0; };
  l.holds = [](void*, unsigned long long* reasons) { return *reasons = 0x04, 0; };
  l.processes = [](void*, unsigned* count, nvml_library::process* out) {
    if (*count < 3) return 7;
    out[0] = {7, 1000, 0, 0};
    out[1] = {self, 500, 0, 0};
    out[2] = {8, 24, 0, 0};
    return *count = 3, 0;
  };
  return l;
}

}  // namespace

TEST_CASE("a device's state is its clock, what holds it down, and the other processes") {
  const device_state s = read_state(good(), "0000:01:00.0", self);
  CHECK(s.why_unknown == "");
  CHECK(s.clock_mhz == 1410u);
  CHECK(s.most_clock_mhz == 1980u);
  CHECK(s.celsius == 61u);
  CHECK(s.held_by_power == true);
  CHECK(s.held_by_heat == false);
  CHECK(s.others == 2u);
  CHECK(s.others_bytes == 1024u);
}

TEST_CASE("heat that holds a clock down is told from power") {
  nvml_library l = good();
  for (const unsigned long long heat : {0x08ull, 0x20ull, 0x40ull}) {
    static unsigned long long now;
    now = heat | 0x01;
    l.holds = [](void*, unsigned long long* reasons) { return *reasons = now, 0; };
    const device_state s = read_state(l, "0000:01:00.0", self);
    CHECK(s.held_by_heat == true);
    CHECK(s.held_by_power == false);
  }
}

TEST_CASE("what the management library refuses is absent, and memory that it does not know is not counted") {
  nvml_library l = good();
  l.holds = [](void*, unsigned long long*) { return 3; };
  l.clock = [](void*, int, unsigned*) { return 3; };
  device_state s = read_state(l, "0000:01:00.0", self);
  CHECK(!s.clock_mhz);
  CHECK(!s.held_by_heat);
  CHECK(!s.held_by_power);
  CHECK(s.celsius == 61u);
  l.processes = [](void*, unsigned* count, nvml_library::process* out) {
    out[0] = {7, ~0ull, 0, 0};
    out[1] = {9, 10, 0, 0};
    return *count = 2, 0;
  };
  s = read_state(l, "0000:01:00.0", self);
  CHECK(s.others == 2u);
  CHECK(!s.others_bytes);
  l.processes = [](void*, unsigned*, nvml_library::process*) { return 3; };
  CHECK(!read_state(l, "0000:01:00.0", self).others);
}

TEST_CASE("a device that the management library does not know has no state, and the reason is told") {
  const device_state s = read_state(good(), "0000:02:00.0", self);
  CHECK(s.why_unknown.find("0000:02:00.0") != std::string::npos);
  CHECK(!s.celsius);
}

}  // namespace weir::tests::nvml_test
