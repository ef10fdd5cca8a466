// A model opened on a cuda device: every byte is counted, pages take what the reserve leaves, and what does
// not fit is refused. Skipped, saying so, where there is no device.
#include "actors/open_model.h"

#include <catch2/catch.hpp>

#include "actors/gpu_owner.h"
#include "actors/memory_plan.h"
#include "core/model/load.h"
#include "tests/support/cuda_device.h"

namespace weir::tests::open_model_cuda_test {

using namespace weir::actors;

namespace {

constexpr std::uint64_t mb = 1u << 20;

owner_options of_cuda() {
  owner_options o;
  o.device = "cuda:0";
  o.max_batch = 64;
  o.max_seq_len = 1 << 20;  // far more than there is memory for
  o.reserve_bytes = 3000 * mb;
  return o;
}

core::result<std::unique_ptr<ready_model>> open(const owner_options& o,
                                                const std::shared_ptr<const kernels::backend>& b) {
  return open_model({"m", "random:tiny-110m"}, o, b, {});
}

}  // namespace

TEST_CASE("cuda: pages take all of a device but the reserve, and nothing is unaccounted for") {
  const auto b = tests::cuda_device();
  if (!b) return;
  { const auto first = open(of_cuda(), b).value(); }  // the first model loads the kernels' code
  for (const std::uint64_t reserve : {512 * mb, 3000 * mb, 20000 * mb}) {
    auto o = of_cuda();
    o.reserve_bytes = reserve;
    const auto before = b->memory(b->self);
    const auto m = open(o, b).value();
    const memory_use& use = m->place->memory;
    const auto after = b->memory(b->self);
    CAPTURE(reserve / mb, use.weights, use.pages, use.workspaces, use.runtime, use.free);
    CHECK(use.weights == m->weights->info().weight_bytes);
    CHECK(use.pages == std::uint64_t{m->config.kv_pages} * m->weights->info().page_bytes);
    CHECK(use.free == after.free);
    CHECK(use.total == after.total);
    // The driver hands out 2 MiB at a time; graphs may lie elsewhere the second time.
    CHECK(use.free + 32 * mb >= reserve);
    CHECK(use.free <= reserve + 32 * mb);
    // What the backend took when it was opened counts, and was there before.
    CHECK(before.free + b->own_bytes - use.free == use.weights + use.pages + use.workspaces + use.runtime);
    CHECK(use.runtime < 400 * mb);
  }
}

TEST_CASE(
    "cuda: more pages than the reserve leaves are refused with the numbers, and the next model is opened") {
  const auto b = tests::cuda_device();
  if (!b) return;
  { const auto first = open(of_cuda(), b).value(); }
  auto o = of_cuda();
  const std::uint64_t free = b->free_bytes(b->self);
  o.kv_tokens = free / (2 * 12 * 768 * 2);  // as if nothing else took any
  const auto refused = open(o, b);
  REQUIRE(!refused);
  CHECK(refused.error().code == core::errc::does_not_fit);
  CHECK_THAT(refused.error().message, Catch::Contains("MB more than is free beside --reserve-vram, 3000 MB"));
  CHECK(b->fault(b->self) == nullptr);
  CHECK(b->free_bytes(b->self) == free);
  o.kv_tokens = 100000;
  CHECK(open(o, b).has_value());
}

TEST_CASE("cuda: a model takes the lines that were planned for it, and the pages that it was granted") {
  if (!tests::cuda_device()) return;
  { const auto first = open(of_cuda(), tests::cuda_device()).value(); }  // loads the kernels' code
  for (const char* source : {"random:tiny-110m", "random:tiny-110m:q4_k", "random:tiny-110m:f32"})
    for (const bool deterministic : {false, true}) {
      auto o = of_cuda();
      o.deterministic = deterministic;
      o.max_seq_len = 4096;
      const auto device = measure_device("cuda:0", o).value();
      model_spec spec{"m", source};
      const load_step load{spec};
      const auto plan = plan_memory({&load, 1}, o, {&device, 1}).value();
      REQUIRE(plan.fits());
      const auto& planned = plan.models[0];
      spec.pages = static_cast<std::uint32_t>(planned.pages);
      const auto b = core::make_backend("cuda:0", 1, deterministic).value();
      const auto m = open_model(spec, o, b, {}).value();
      const memory_use& use = m->place->memory;
      CAPTURE(source, deterministic, use.runtime / mb, planned.lines.runtime / mb);
      CHECK(use.weights == planned.lines.weights);
      CHECK(use.workspaces == planned.lines.workspaces);
      CHECK(use.pages == planned.lines.pages);
      CHECK(use.runtime <= planned.lines.runtime + 128 * mb);
      CHECK(planned.lines.runtime <= use.runtime + 128 * mb);
      CHECK(use.total == device.total);
    }
}

}  // namespace weir::tests::open_model_cuda_test
