// What is said of a machine's CUDA devices, with answers that a test gives in the driver's place.
#include "kernels/cuda/device/machine.h"

#include <catch2/catch.hpp>

namespace weir::tests::cuda_machine_test {

using namespace weir::kernels;
using Catch::Contains;

namespace {

cuda_count counted(int driver, int devices) {
  cuda_count c;
  c.driver = driver;
  c.runtime = 13000;
  c.devices = devices;
  return c;
}

cuda_opening opened(int capability) {
  cuda_opening o;
  o.name = "cuda:1 (Some Card)";
  o.capability = capability;
  o.built_for = "80 90a-real";
  o.total = 24ull << 30;
  o.wanted = 68 << 20;
  return o;
}

}  // namespace

TEST_CASE("a machine has CUDA devices where its driver counts some") {
  const auto m = machine_of(counted(13000, 2));
  CHECK(m.presence == cuda_presence::there);
  CHECK(m.devices == 2);
  CHECK(m.why == "");
}

TEST_CASE("a machine without a driver or without a device has none, and is told what to do") {
  cuda_count c = counted(0, 0);
  c.driver_too_old = true;  // as CUDA answers where no driver is installed
  c.failure = "cudaErrorInsufficientDriver, …";
  CHECK(machine_of(c).presence == cuda_presence::none);
  CHECK_THAT(machine_of(c).why, Contains("no CUDA driver is installed") && Contains("install"));

  c = counted(13000, 0);
  CHECK(machine_of(c).presence == cuda_presence::none);
  CHECK_THAT(machine_of(c).why, Contains("sees no device") && Contains("nvidia-smi"));
  c.no_device = true;
  c.failure = "cudaErrorNoDevice, …";
  CHECK(machine_of(c).presence == cuda_presence::none);
  CHECK_THAT(machine_of(c).why, Contains("sees no device") && Contains("CUDA_VISIBLE_DEVICES"));
}

TEST_CASE("a driver that is too old, and one that fails, are no machine without devices") {
  cuda_count c = counted(12040, 0);
  c.driver_too_old = true;
  c.failure = "cudaErrorInsufficientDriver, …";
  auto m = machine_of(c);
  CHECK(m.presence == cuda_presence::failing);
  CHECK_THAT(m.why, Contains("supports CUDA 12.4") && Contains("built with CUDA 13.0") &&
                        Contains("install a newer driver") && Contains("--device cpu"));

  c = counted(13000, 0);
  c.failure = "cudaErrorSystemNotReady, system not yet initialized";
  m = machine_of(c);
  CHECK(m.presence == cuda_presence::failing);
  CHECK(m.devices == 0);
  CHECK_THAT(m.why, Contains("cudaErrorSystemNotReady") && Contains("--device cpu"));
}

TEST_CASE("devices from compute capability 8.0 on are taken, older ones refused, saying what is needed") {
  for (const int capability : {80, 86, 89, 90, 100, 120, 121}) CHECK(refusal_of(opened(capability)) == "");
  for (const int capability : {35, 61, 75})
    CHECK_THAT(refusal_of(opened(capability)),
               Contains("cuda:1 (Some Card)") && Contains("needs 8.0 or later") && Contains("--device cpu"));
  CHECK_THAT(refusal_of(opened(75)), Contains("compute capability 7.5"));
}

TEST_CASE("a device that this build has no code for is refused, saying which build has") {
  cuda_opening o = opened(120);
  o.runs_code = false;
  CHECK_THAT(refusal_of(o), Contains("12.0") && Contains("80 90a-real") && Contains("release-all"));
  o = opened(120);
  o.newer_ptx = true;
  CHECK_THAT(refusal_of(o), Contains("driver is too old") && Contains("12.0"));
}

TEST_CASE("a device that is full is refused, with what is free and what is needed") {
  cuda_opening o = opened(89);
  o.memory_short = true;
  o.free = 12 << 20;
  CHECK_THAT(refusal_of(o), Contains("12 of its 24576 MiB are free") && Contains("takes 68 MiB") &&
                                Contains("nvidia-smi") && Contains("--device cuda:N"));
  o.free = 0;  // too little memory even to ask for the free bytes
  CHECK_THAT(refusal_of(o), Contains("hardly any of its 24576 MiB are free"));
}

}  // namespace weir::tests::cuda_machine_test
