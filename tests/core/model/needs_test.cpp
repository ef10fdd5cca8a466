// What a model takes of its device is known from the headers of its files: weights, pages and workspaces are
// compared with what a load allocates, byte for byte.
#include <catch2/catch.hpp>
#include <iostream>
#include <map>
#include <set>

#include "core/model/load.h"
#include "kernels/activations.h"
#include "kernels/cuda/backend.h"
#include "kernels/host_memory.h"
#include "tests/support/cuda_device.h"
#include "tests/support/data.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::needs_test {

using namespace weir::core;

namespace {

using backend_ptr = std::shared_ptr<const kernels::backend>;

// A backend of the host that counts what lies in its memory.
struct counted {
  kernels::backend table;
  backend_ptr real;
  static inline std::uint64_t bytes = 0;
  static inline std::map<void*, std::uint64_t> parts;  // by the first address of a reservation: its bytes
};

backend_ptr counting(const backend_ptr& real) {
  auto c = std::make_shared<counted>();
  c->real = real;
  c->table = *real;
  static void* (*allocate)(void*, std::uint64_t);
  static void (*release)(void*, void*, std::uint64_t);
  allocate = real->do_allocate;
  release = real->do_free;
  c->table.do_allocate = [](void* self, std::uint64_t n) {
    counted::bytes += n;
    return allocate(self, n);
  };
  c->table.do_free = [](void* self, void* at, std::uint64_t n) {
    const auto part = counted::parts.find(at);
    counted::bytes -= part == counted::parts.end() ? n : part->second;
    if (part != counted::parts.end()) counted::parts.erase(part);
    release(self, at, n);
  };
  c->table.do_reserve = [](void* self, std::uint64_t n, std::uint64_t piece) {
    void* at = kernels::host_reserve(self, n, piece);
    counted::parts[at] = 0;
    return at;
  };
  c->table.do_take_again = [](void* self, void* at, std::uint64_t n) {
    counted::bytes += n;
    std::prev(counted::parts.upper_bound(at))->second += n;
    return kernels::host_take_again(self, at, n);
  };
  const kernels::backend* t = &c->table;
  return {std::move(c), t};
}

// Loads a model as an owner does, and compares what it takes at each step with what was planned.
void compare(const std::string& path, const backend_ptr& on, kv_choice kv, std::uint32_t batch) {
  CAPTURE(path, on->name, kv ? kernels::name(*kv) : "auto", batch);
  const auto planned = inspect_model(path, *on, kv, batch);
  auto loaded = load_model(path, on, {}, kv);
  REQUIRE(planned.has_value() == loaded.has_value());
  if (!planned) return;
  model& m = *loaded->weights;
  const std::uint64_t weights = counted::bytes;
  CHECK(weights == planned->weight_bytes);
  CHECK(m.info().page_bytes == planned->page_bytes);
  CHECK(m.info().pool.step == planned->pool.step);
  CHECK(m.info().pool.even == planned->pool.even);
  constexpr std::uint32_t pages = 3;
  m.allocate_pages(pages).value();
  CHECK(counted::bytes == weights + pages * planned->page_bytes);
  m.warm_up(batch, m.info().prompt_rows).value();
  CHECK(counted::bytes == weights + pages * planned->page_bytes + planned->workspaces);
  CHECK(m.activation_bytes() == planned->workspaces);
  CHECK(planned->runtime == 0);
}

}  // namespace

TEST_CASE("every reference model takes what its headers say, in every type of keys and values") {
  auto paths = tests::reference_models();
  for (const auto& dir : tests::bundled_families()) paths.push_back(dir);
  for (const char* name : {"gemma3", "cohere", "phi3-longrope-long", "nemotron", "glm4", "olmo2",
                           "gpt-oss-mxfp4", "qwen2-moe", "granite4-dense"})
    if (const auto dir = tests::data_dir() / "models-families" / name; std::filesystem::exists(dir))
      paths.push_back(dir);
  for (const auto& dir : tests::data_folders("models-quant", "config.json")) paths.push_back(dir);
  for (const auto& dir : tests::data_folders("models-quant", "hf-config.json")) {
    const auto file = dir / "model.gguf";
    paths.push_back(std::filesystem::exists(file) ? file : dir / "model-00001-of-00002.gguf");
  }
  const tests::temporary_dir toy;
  tests::toy_options odd;
  odd.qkv_bias = odd.qk_norm = true;
  odd.heads = 6;
  odd.kv_heads = 3;
  tests::write_toy_directory(toy.path(), odd);
  paths.push_back(toy.path());
  const auto cpu = counting(kernels::cpu_backend(1));
  std::uint32_t batch = 1;
  for (const auto& path : paths) {
    for (const char* kv : {"auto", "f32", "bf16", "fp8", "q8"})
      compare(path.string(), cpu, parse_kv_type(kv).value(), batch++ % 70 + 1);
    REQUIRE(counted::bytes == 0);
  }
  CHECK(paths.size() > 2);
}

TEST_CASE(
    "quantised weights beside activations of 8 bits, and those of the definition, take what is planned") {
  const auto rill = tests::bundled_models().front().string();
  auto paths = tests::data_folders("models-quant", "model.gguf");
  for (auto& p : paths) p /= "model.gguf";
  paths.push_back(rill);
  for (const auto& path : paths) {
    compare(path.string(), counting(kernels::cpu_backend(1, kernels::activation_type::int8)), {}, 3);
    compare(path.string(), counting(kernels::reference_backend()), {}, 5);
  }
}

TEST_CASE("random models take what is planned, in every type of weights") {
  const auto cpu = counting(kernels::cpu_backend(2));
  for (std::size_t i = 0; i < kernels::dtype_count; ++i) {
    auto shape = parse_random_model(std::string("tiny-110m:") + kernels::all_dtypes[i].name, 512).value();
    set_layers(shape.config, 1, shape.config.shape.layers.front());
    shape.config.shape.vocab = 999;
    CAPTURE(kernels::all_dtypes[i].name);
    const auto planned = inspect_random_model(shape, *cpu, {}, 9).value();
    const auto made = make_random_model(shape, cpu).value();
    CHECK(counted::bytes == planned.weight_bytes);
    CHECK(made.weights->info().page_bytes == planned.page_bytes);
    made.weights->warm_up(9, made.weights->info().prompt_rows).value();
    CHECK(counted::bytes == planned.weight_bytes + planned.workspaces);
  }
}

TEST_CASE("a mixture of 30 billion weights takes the sum of its tensors, of which none is loaded") {
  constexpr std::uint64_t vocab = 151'936, hidden = 2048, layers = 48, heads = 32, kv_heads = 4,
                          head_dim = 128, experts = 128, chosen = 8, inter = 768, batch = 5;
  const std::uint64_t attention = (2 * heads + 2 * kv_heads) * head_dim * hidden,
                      mixture = experts * 3 * inter * hidden,
                      floats = 2 * hidden + 2 * head_dim + experts * hidden;  // norms and the router
  const auto shape = parse_random_model("qwen3-30b-a3b", 8192).value();
  const auto s = inspect_random_model(shape, *kernels::reference_backend(), {}, batch).value();
  CHECK(s.weight_bytes ==
        2 * vocab * hidden * 2 + hidden * 4 + layers * (attention * 2 + mixture * 2 + floats * 4));
  CHECK(s.page_bytes == layers * 2 * kv_heads * page_tokens * head_dim * 4);
  const std::uint64_t rows = batch + model_info().prompt_rows,
                      row = 3 * hidden + head_dim + (2 * heads + 2 * kv_heads) * head_dim +
                            chosen * 3 * inter + 2 * chosen + 1 + chosen * hidden;
  CHECK(s.workspaces == (rows * row + batch * vocab) * 4);
  CHECK(s.runtime == 0);
}

TEST_CASE("sizes on a cuda device need neither the device nor its weights") {
  const auto h100 = kernels::cuda_sizes(kernels::hopper_facts);
  const auto shape = parse_random_model("llama-3.1-8b", 8192).value();
  const auto s = inspect_random_model(shape, *h100, {}, 64).value();
  CHECK(s.page_bytes == std::uint64_t{32} * 2 * 8 * 64 * 128 * 2);
  CHECK(s.weight_bytes > 16'050'000'000);
  CHECK(s.weight_bytes < 16'070'000'000);
  // Rows of steps at their most, of f32, elements and logits, are most of it.
  const std::uint64_t rows = 64 + 2048,
                      row = (4096 + 6144) * 4 + (4096 + 6144 + 4096 + 3 * 14336) * 2 + 128 * 4,
                      own = 68u << 20;
  CHECK(s.workspaces > own + rows * row + 64 * 128'256 * 4);
  CHECK(s.workspaces < own + rows * row + 64 * 128'256 * 4 + (64u << 20));
  // A graph for each class of up to 64 rows; from 17 rows on rows are listed, which is the same graph twice.
  CHECK(s.runtime == std::uint64_t{64 + 15} << 20);

  // A model with weights in f32 runs by single operations.
  const auto plain =
      inspect_random_model(parse_random_model("tiny-110m:f32", 2048).value(), *h100, {}, 4).value();
  CHECK(plain.runtime == std::uint64_t{64} << 20);
  CHECK(plain.page_bytes == std::uint64_t{12} * 2 * 12 * 64 * 64 * 4);

  const auto fp8 = parse_kv_type("fp8").value(), f32 = parse_kv_type("f32").value();
  CHECK(inspect_random_model(shape, *h100, fp8).value().page_bytes * 2 == s.page_bytes);
  CHECK(inspect_random_model(shape, *h100, f32).error().code == errc::invalid_param);
  auto deterministic = kernels::hopper_facts;
  deterministic.deterministic = true;
  // One graph for 64 padded rows.
  CHECK(inspect_random_model(shape, *kernels::cuda_sizes(deterministic), {}, 64).value().runtime ==
        std::uint64_t{64 + 1} << 20);
}

TEST_CASE("cuda: a decoder takes what is planned without the device, whatever its weights and pages") {
  for (const bool deterministic : {false, true}) {
    const auto shared = tests::cuda_device(deterministic);
    if (!shared) return;
    const auto sizes = kernels::cuda_sizes(kernels::facts_of(*shared).value());
    for (const char* spec : {"tiny-110m:bf16", "tiny-110m:f16", "tiny-110m:q4_k", "tiny-110m:q8_0",
                             "tiny-110m:mxfp4", "tiny-110m:int4", "tiny-110m:f32"})
      for (const char* type : {"auto", "fp8", "q8"})
        for (const std::uint32_t batch : {1u, 7u, 64u, 600u}) {
          const kv_choice kv = parse_kv_type(type).value();
          auto shape = parse_random_model(spec, 4096).value();
          set_layers(shape.config, 2, shape.config.shape.layers.front());
          CAPTURE(deterministic, spec, type, batch);
          const auto planned = inspect_random_model(shape, *sizes, kv, batch);
          const auto b = make_backend("cuda:0", 1, deterministic).value();
          CHECK(b->memory(b->self).workspaces == b->own_bytes);
          auto made = make_random_model(shape, b, 1, kv);
          REQUIRE(planned.has_value() == made.has_value());
          if (!planned) continue;
          model& m = *made->weights;
          CHECK(m.info().weight_bytes == planned->weight_bytes);
          CHECK(m.info().page_bytes == planned->page_bytes);
          CHECK(m.info().pool.step == planned->pool.step);
          CHECK(m.info().pool.even == planned->pool.even);
          m.allocate_pages(64).value();
          const std::uint64_t before = b->free_bytes(b->self);
          m.warm_up(batch, m.info().prompt_rows).value();
          CHECK(b->memory(b->self).workspaces + m.activation_bytes() == planned->workspaces);
          // Code and graphs: what fell beyond the workspaces is within 128 MiB of the estimate.
          const std::uint64_t fell = before - b->free_bytes(b->self);
          CHECK(fell < planned->workspaces + planned->runtime + (128u << 20));
        }
  }
}

}  // namespace weir::tests::needs_test
