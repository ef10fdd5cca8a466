// What devices say of a model before it is loaded: the bytes of the server's own plan.
#include "actors/inspect_devices.h"

#include <catch2/catch.hpp>

#include "core/inspect/report_text.h"
#include "core/model/load.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::inspect_devices_test {

using namespace weir::actors;
using Catch::Matchers::Contains;

TEST_CASE("inspect devices: the bytes are those that loads are planned with") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), {});
  const model_spec spec{"m", dir.path().string()};
  owner_options o;
  o.max_batch = 3;
  o.context = 256;
  const auto all = inspect_on(spec, o, {"cpu", "reference", "cuda:0", "cuda:1"}, 40ull << 30);
  REQUIRE(all.size() == 4);
  for (const auto& d : all) {
    INFO(d.device);
    REQUIRE(!d.wrong);
    const auto device = d.device.starts_with("cuda") ? assume_device(d.device, 40ull << 30, o)
                                                     : measure_device(d.device, o).value();
    const auto needs = core::inspect_model(spec.source, *device.sizes, {}, 3, 256).value();
    CHECK(d.lines.weights == needs.weight_bytes);
    CHECK(d.lines.workspaces == needs.workspaces);
    CHECK(d.page_bytes == needs.page_bytes);
    CHECK(d.context == 256);
    const load_step load{spec};
    const auto plan = plan_memory({&load, 1}, o, {&device, 1}).value();
    CHECK(d.kv_tokens == plan.models[0].kv_tokens);
    CHECK(d.lacks.empty());
    CHECK(d.assumed.empty() == !d.device.starts_with("cuda"));
  }
  CHECK(all[2].free == (40ull << 30) - 600'000'000 - o.reserve_bytes);
}

TEST_CASE("inspect devices: what a device lacks or has not is said of that device") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), {});
  const model_spec spec{"m", dir.path().string()};
  owner_options o;
  const auto odd = inspect_on(spec, o, {"abacus", "cuda:0"}, 1000);
  REQUIRE(odd[0].wrong);
  CHECK_THAT(odd[0].wrong->message, Contains("abacus"));
  CHECK_THAT(odd[1].lacks, Contains("does not fit: cuda:0 lacks"));
  o.kv = kernels::kv_type::fp8;
  const auto other = inspect_on(spec, o, {"cuda:0"}, 40ull << 30);  // in f32, by single operations
  REQUIRE(other[0].wrong);
  CHECK_THAT(other[0].wrong->message, Contains("fp8"));
}

}  // namespace weir::tests::inspect_devices_test
