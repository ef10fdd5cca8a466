// Plans of memory for the models of a service: from headers, for devices that are there and for others, and
// what loads do with what they were granted.
#include "actors/memory_plan.h"

#include <catch2/catch.hpp>

#include "actors/open_model.h"
#include "core/cache/page.h"
#include "core/model/load.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::memory_plan_test {

using namespace weir::actors;
using Catch::Matchers::Contains;

namespace {

constexpr std::uint64_t gb = 1u << 30;

owner_options on_device(const char* device) {
  owner_options o;
  o.device = device;
  return o;
}

planned_device host_with(std::uint64_t total) {
  planned_device d;
  d.name = "cpu";
  d.total = total;
  d.kind = core::memory_kind::host;
  d.sizes = kernels::cpu_backend(1);
  return d;
}

}  // namespace

TEST_CASE("memory plan: an opened model takes the lines that were planned for it") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), {});
  for (const std::string& source : {dir.path().string(), std::string("random:tiny-110m:q4_0")})
    for (const char* kv : {"auto", "q8"}) {
      auto o = on_device("cpu");
      o.max_batch = 3;
      o.max_seq_len = 256;
      o.kv = core::parse_kv_type(kv).value();
      const model_spec spec{"m", source};
      const auto device = measure_device("cpu", o).value();
      CHECK(device.total > device.outside);
      const load_step load{spec};
      const auto plan = plan_memory({&load, 1}, o, {&device, 1}).value();
      REQUIRE(plan.fits());
      const auto& planned = plan.models[0];
      const auto m = open_model(spec, o, kernels::cpu_backend(1), {}).value();
      CHECK(m->place->memory.weights == planned.lines.weights);
      CHECK(m->place->memory.workspaces == planned.lines.workspaces);
      CHECK(m->place->memory.pages == planned.lines.pages);
      CHECK(m->config.kv_pages == planned.pages);
      CHECK(m->place->context == planned.context);
      CHECK(planned.lines.runtime == 0);
    }
}

TEST_CASE("memory plan: errors name the file, the option or the device") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), {});
  tests::write_file(dir.path() / "config.json", "{");
  const auto o = on_device("cpu");
  const auto device = host_with(gb);
  const auto message = [&](const std::string& source) {
    const load_step load{{"m", source}};
    return plan_memory({&load, 1}, o, {&device, 1}).error().message;
  };
  CHECK_THAT(message("/nowhere"), Contains("--model /nowhere"));
  CHECK_THAT(message(dir.path().string()), Contains(dir / "config.json"));
  CHECK_THAT(message("random:huge"), Contains("'huge' is not a random model"));
  CHECK_THAT(measure_device("abacus", o).error().message, Contains("--device"));
  auto sim = on_device("sim");
  const auto simulated = measure_device("sim", sim).value();
  CHECK(simulated.total == 0);
  CHECK_THAT(needs_of({"sim", "sim:rat=3"}, sim, simulated).error().message, Contains("no key «rat»"));
  sim.kv = core::parse_kv_type("q8").value();
  CHECK_THAT(needs_of({"sim", "sim"}, sim, simulated).error().message, Contains("--kv-type: sim"));
}

TEST_CASE("memory plan: a simulated device has room for everything, and the pages of a load") {
  const auto o = on_device("sim");
  const load_step load{{"sim", "sim:ctx=5000"}};
  const auto device = measure_device("sim", o).value();
  const auto plan = plan_memory({&load, 1}, o, {&device, 1}).value();
  CHECK(plan.fits());
  CHECK(plan.models[0].pages == open_model(load.spec, o, nullptr, {}).value()->config.kv_pages);
  CHECK(plan.models[0].context == 5000);
}

TEST_CASE("memory plan: cards that are not there are planned, and what is assumed of them is said") {
  auto o = on_device("cuda:0");
  o.max_batch = 64;
  const std::vector<planned_device> devices{assume_device("cuda:0", 80 * gb, o),
                                            assume_device("cuda:1", 20 * gb, o)};
  const std::vector<model_spec> models{{"chat", "random:llama-3.1-8b"}, {"small", "random:llama-3.2-1b"}};
  const auto plan = plan_memory(plan_loads(models, 1, 2), o, devices).value();
  REQUIRE(plan.fits());
  CHECK(plan.models[0].name == "small");
  CHECK(plan.models[0].device == 1);
  CHECK(plan.devices[1].reserve == o.reserve_bytes);
  REQUIRE(plan.assumed.size() == 2);
  CHECK_THAT(plan.assumed[0], Contains("H100") && Contains("132 multiprocessors") && Contains("600 MB"));

  const auto both = plan_memory(plan_loads(models, 2, 2), o, devices).value();
  REQUIRE(both.models.size() == 4);
  REQUIRE_FALSE(both.fits());  // 20 GB have no room for both
  CHECK(both.lacks->device == "cuda:1");
  CHECK(both.lacks->of == "the pages of chat");
  const auto lone =
      plan_memory(plan_loads(models, 1, 1), o, std::vector{assume_device("cuda:0", 18 * gb, o)});
  REQUIRE_FALSE(lone->fits());
  CHECK(lone->lacks->of == "the weights of chat");
}

TEST_CASE("memory plan: two hosts of one name are one account") {
  const auto o = on_device("cpu");
  const std::vector<model_spec> models{{"m", "random:tiny-110m"}};
  const std::vector<planned_device> devices{host_with(gb), host_with(gb)};
  const auto plan = plan_memory(plan_loads(models, 2, 2), o, devices).value();
  REQUIRE(plan.devices.size() == 1);
  CHECK(plan.models.size() == 2);
  CHECK(plan.models[1].device == 0);
}

TEST_CASE("a load has the pages that it was granted, and is refused where they are not there") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), {});
  model_spec spec{"toy", dir.path().string()};
  spec.pages = 11;
  const auto m = open_model(spec, on_device("reference"), kernels::reference_backend(), {}).value();
  CHECK(m->config.kv_pages == 11);
  auto little = std::make_shared<kernels::backend>(*kernels::reference_backend());
  little->free_bytes = [](void*) -> std::uint64_t { return 16u << 20; };
  spec.pages = 1u << 20;
  const auto refused = open_model(spec, on_device("reference"), little, {});
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == core::errc::does_not_fit);
  CHECK_THAT(refused.error().message, Contains("toy: 1048576 pages were granted, and 16 MB are free"));
}

TEST_CASE("a load refuses a pool that is smaller than --kv-floor") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), {});
  auto little = std::make_shared<kernels::backend>(*kernels::reference_backend());
  little->free_bytes = [](void*) -> std::uint64_t { return 2u << 20; };
  auto o = on_device("reference");
  const auto open = [&] { return open_model({"toy", dir.path().string()}, o, little, {}); };
  const auto auto_pages = open().value()->config.kv_pages;
  o.kv_floor = auto_pages * core::page_tokens;
  CHECK(open().value()->config.kv_pages == auto_pages);
  o.kv_floor += 1;
  CHECK_THAT(open().error().message, Contains("--kv-floor"));
}

}  // namespace weir::tests::memory_plan_test
