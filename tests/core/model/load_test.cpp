#include "core/model/load.h"

#include <catch2/catch.hpp>

#include "kernels/decoder.h"
#include "tests/support/drive.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::load_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

// A toy directory whose tensors were changed before they were written.
template <class F>
std::string refusal(const tests::toy_options& o, const F& change) {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), o);
  auto tensors = tests::toy_tensors(o);
  change(tensors);
  tests::write_file(dir / "model.safetensors", tests::safetensors_bytes(tensors));
  const auto inspected = inspect_model(dir.path().string(), *kernels::reference_backend());
  const auto loaded = load_model(dir.path().string(), kernels::reference_backend());
  if (inspected || loaded) return "accepted";
  CHECK(inspected.error().message == loaded.error().message);
  CHECK_THAT(loaded.error().message, Contains(dir.path().string()));
  return loaded.error().message;
}

tests::toy_tensor& named(std::vector<tests::toy_tensor>& tensors, const std::string& name) {
  return *std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
}

using tensors = std::vector<tests::toy_tensor>;

}  // namespace

TEST_CASE("a page's bytes are those of the backend that is asked") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), {});
  auto b = *kernels::reference_backend();
  const auto alone = inspect_model(dir.path().string(), b).value();
  b.decoder_page_bytes = [](void*, const kernels::decoder_shape& s) -> std::uint64_t {
    const bool whole =
        s.layers.size() == 2 && s.layers[1].down.rows == s.model.hidden && s.head.rows == s.model.vocab;
    return whole ? 4321 : 0;
  };
  CHECK(inspect_model(dir.path().string(), b).value().page_bytes == 4321);
  b.decoder_page_bytes = [](void*, const kernels::decoder_shape&) -> std::uint64_t { return 0; };
  CHECK(inspect_model(dir.path().string(), b).value().page_bytes == alone.page_bytes);
}

TEST_CASE("a page's bytes are those of its type, scales included, before the load and after it") {
  tests::toy_options o;
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), o);
  const auto heads = [](std::uint64_t row) {
    return 2 * 2 * 2 * row * page_tokens;
  };  // layers, k and v, heads
  const std::pair<const char*, std::uint64_t> all[] = {{"auto", heads(8 * 4)},
                                                       {"f32", heads(8 * 4)},
                                                       {"bf16", heads(8 * 2)},
                                                       {"fp8", heads(8)},
                                                       {"q8", heads(8 + 2)}};
  for (const auto& b : {kernels::reference_backend(), kernels::cpu_backend(1)})
    for (const auto& [type, bytes] : all) {
      CAPTURE(b->name, type);
      const kv_choice kv = parse_kv_type(type).value();
      CHECK(inspect_model(dir.path().string(), *b, kv).value().page_bytes == bytes);
      const auto m = load_model(dir.path().string(), b, {}, kv).value();
      CHECK(m.weights->info().page_bytes == bytes);
      CHECK(m.weights->info().kv_type == (kv ? type : "f32"));
    }
}

TEST_CASE("a type of pages that the backend does not store is refused by name, before anything is read") {
  auto b = std::make_shared<kernels::backend>(*kernels::reference_backend());
  b->name = "cuda:0 (a device)";
  b->stores_kv = nullptr;
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), {});
  const kv_choice q8 = parse_kv_type("q8").value();
  for (const auto& e : {inspect_model(dir.path().string(), *b, q8).error(),
                        load_model(dir.path().string(), b, {}, q8).error()}) {
    CHECK(e.code == errc::invalid_param);
    CHECK_THAT(e.message, Contains("--kv-type q8") && Contains("cuda:0") && Contains("auto"));
  }
  CHECK(load_model(dir.path().string(), b, {}, parse_kv_type("auto").value()).has_value());

  // A type that decoders store is refused for a model that none of them takes so.
  b->decoder_stores_kv = [](void*, kernels::kv_type type) { return type == kernels::kv_type::fp8; };
  CHECK_THAT(inspect_model(dir.path().string(), *b, q8).error().message,
             Contains("--kv-type q8") && Contains("takes auto, fp8;"));
  const kv_choice fp8 = parse_kv_type("fp8").value();
  for (const auto& e : {inspect_model(dir.path().string(), *b, fp8).error(),
                        load_model(dir.path().string(), b, {}, fp8).error()}) {
    CHECK(e.code == errc::invalid_param);
    CHECK_THAT(e.message, Contains("--kv-type fp8: on cuda:0") && Contains("single operations"));
  }
  b->decoder_page_bytes = [](void*, const kernels::decoder_shape& s) -> std::uint64_t {
    return s.kv == kernels::kv_type::fp8 ? 100 : 200;
  };
  CHECK(inspect_model(dir.path().string(), *b, fp8).value().page_bytes == 100);
  CHECK(inspect_model(dir.path().string(), *b).value().page_bytes == 200);
  b->decoder_page_bytes = [](void*, const kernels::decoder_shape& s) -> std::uint64_t {
    return s.kv ? 0 : 200;
  };
  CHECK_THAT(inspect_model(dir.path().string(), *b, fp8).error().message, Contains("of another 16-bit type"));
  CHECK_THAT(parse_kv_type("int3").error().message, Contains("bf16, fp8 or q8, not 'int3'"));
}

TEST_CASE("a directory's bytes are known before it is loaded, and are what it then takes") {
  for (const char* dtype : {"F32", "BF16", "F16"}) {
    tests::toy_options o;
    o.dtype = dtype;
    o.qkv_bias = o.out_bias = true;
    const tests::temporary_dir dir;
    tests::write_toy_directory(dir.path(), o);
    const auto summary = inspect_model(dir.path().string(), *kernels::reference_backend()).value();
    std::uint64_t done = 0, total = 0, calls = 0;
    const auto loaded =
        load_model(dir.path().string(), kernels::reference_backend(), [&](std::uint64_t d, std::uint64_t t) {
          CHECK(d > done);
          done = d;
          total = t;
          ++calls;
        }).value();
    const model_info& info = loaded.weights->info();
    CHECK(info.weight_bytes == summary.weight_bytes);
    CHECK(info.page_bytes == summary.page_bytes);
    CHECK(info.page_bytes ==
          2ull * 2 * 2 * 8 * page_tokens * 4);  // layers, k and v, kv_heads, head_dim, tokens, f32
    CHECK(info.stop_ids == token_set{tests::toy_eos});
    CHECK(info.context == 512);
    CHECK(done == total);
    CHECK(total <= info.weight_bytes);  // but for what alignment adds
    CHECK(calls > 10);
    CHECK(loaded.generation.bos == tests::toy_bos);
  }
}

TEST_CASE("a tensor that is missing or of another shape is refused, naming it and both shapes") {
  CHECK_THAT(refusal({}, [](tensors& t) { t.pop_back(); }),
             Contains("tensor 'lm_head.weight' [258, 32] is missing"));
  CHECK_THAT(refusal({}, [](tensors& t) { named(t, "model.norm.weight").name = "other"; }),
             Contains("'model.norm.weight' [32] is missing"));
  CHECK_THAT(
      refusal({},
              [](tensors& t) {
                named(t, "model.layers.1.mlp.down_proj.weight").shape = {48, 32};
              }),
      Contains(
          "'model.layers.1.mlp.down_proj.weight' is [48, 32] in the file, but config.json implies [32, 48]"));
  CHECK_THAT(
      refusal({}, [](tensors& t) { named(t, "model.layers.0.self_attn.k_proj.weight").shape = {16 * 32}; }),
      Contains("is [512] in the file, but config.json implies [16, 32]"));
}

TEST_CASE("a tensor of a type that cannot be computed with is refused by name") {
  CHECK_THAT(refusal({}, [](tensors& t) { named(t, "model.norm.weight").dtype = "I32"; }),
             Contains("tensor 'model.norm.weight': dtype I32 is not supported yet"));
}

TEST_CASE("a tensor that the config does not imply is refused, but for those that carry nothing") {
  std::mt19937 r(1);
  const auto extra = [&](const std::string& name, const tests::toy_options& o = {}) {
    return refusal(o, [&](tensors& t) { t.push_back(tests::random_tensor(r, name, "F32", {8})); });
  };
  CHECK_THAT(extra("model.layers.0.self_attn.q_proj.bias"), Contains("implies no such tensor"));
  CHECK_THAT(extra("model.layers.2.mlp.up_proj.weight"), Contains("implies no such tensor"));
  CHECK(extra("model.layers.0.self_attn.rotary_emb.inv_freq") == "accepted");
  tests::toy_options tied;
  tied.tied = true;
  CHECK(extra("lm_head.weight", tied) == "accepted");
}

TEST_CASE("weights of several types in one file give what each gives widened") {
  // Queries in f32 beside keys and values in f16: stacked, they are all f32.
  tests::toy_options o;
  const tests::temporary_dir mixed, wide;
  tests::write_toy_directory(mixed.path(), o);
  tests::write_toy_directory(wide.path(), o);
  auto narrow_ones = tests::toy_tensors(o);
  auto widened = narrow_ones;
  std::mt19937 r(5);
  for (const char* name : {"model.layers.0.self_attn.k_proj.weight", "model.layers.1.mlp.down_proj.weight",
                           "model.norm.weight"}) {
    tests::toy_tensor& half = named(narrow_ones, name);
    half = tests::random_tensor(r, name, "F16", half.shape);
    tests::toy_tensor& full = named(widened, name);
    for (std::size_t i = 0; i < half.bytes.size() / 2; ++i) {
      const float x = kernels::load(half.bytes.data(), kernels::dtype::f16, i);
      std::memcpy(full.bytes.data() + 4 * i, &x, 4);
    }
  }
  tests::write_file(mixed / "model.safetensors", tests::safetensors_bytes(narrow_ones));
  tests::write_file(wide / "model.safetensors", tests::safetensors_bytes(widened));
  std::vector<std::vector<token_id>> out;
  for (const auto* dir : {&mixed, &wide}) {
    auto m = load_model(dir->path().string(), kernels::reference_backend()).value();
    m.weights->allocate_pages(2).value();
    const token_id prompt[] = {1, 2, 3};
    out.push_back(tests::greedy(*m.weights, prompt, 30, 3));
  }
  CHECK(out[0] == out[1]);
}

TEST_CASE("a directory without its files is refused, naming the file") {
  const tests::temporary_dir dir;
  const auto message = [&] {
    return inspect_model(dir.path().string(), *kernels::reference_backend()).error().message;
  };
  CHECK_THAT(message(), Contains("config.json"));
  tests::write_toy_directory(dir.path());
  std::filesystem::remove(dir / "model.safetensors");
  CHECK_THAT(message(), Contains("model.safetensors"));
  tests::write_toy_directory(dir.path());
  std::filesystem::resize_file(dir / "model.safetensors", 1000);
  CHECK_THAT(message(), Contains("model.safetensors") && Contains("1000"));
  tests::write_toy_directory(dir.path());
  tests::write_file(dir / "generation_config.json", R"({"top_p":7})");
  CHECK_THAT(message(), Contains("generation_config.json: 'top_p'"));
}

TEST_CASE("without generation_config.json, config.json says what ends a text") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path());
  std::filesystem::remove(dir / "generation_config.json");
  const auto s = inspect_model(dir.path().string(), *kernels::reference_backend()).value();
  CHECK(s.generation.stop_ids == std::vector<token_id>{tests::toy_eos});
  CHECK(s.generation.defaults.temperature == 1);
}

namespace {

// A backend whose packed weights have a header in front of their rows, so that code which reads them without
// knowing the layout is seen.
constexpr std::uint64_t header = 512;
std::shared_ptr<const kernels::backend> packing_backend() {
  using kernels::matrix;
  static const auto real = kernels::reference_backend();
  static const auto rows_of = [](matrix m) {
    REQUIRE(m.order == kernels::layout::packed);
    m.data = static_cast<const std::byte*>(m.data) + header;
    return m;
  };
  auto b = std::make_shared<kernels::backend>(*real);
  b->weight_bytes = [](void*, kernels::dtype t, std::uint32_t rows, std::uint32_t cols) {
    return matrix{nullptr, t, rows, cols}.bytes() + header;
  };
  b->do_pack = [](void* self, const matrix& m, void* to) {
    real->do_pack(self, m, static_cast<std::byte*>(to) + header);
  };
  b->do_gather = [](void* self, const kernels::gather& op) {
    kernels::gather inner = op;
    if (op.table.order == kernels::layout::packed) inner.table = rows_of(op.table);
    real->do_gather(self, inner);
  };
  b->do_linear = [](void* self, const kernels::linear& op) {
    kernels::linear inner = op;
    inner.w = rows_of(op.w);
    real->do_linear(self, inner);
  };
  return b;
}

}  // namespace

TEST_CASE("weights are laid out by their backend, which is asked what they take") {
  for (const bool tied : {false, true}) {
    tests::toy_options o;
    o.tied = tied;
    const tests::temporary_dir dir;
    tests::write_toy_directory(dir.path(), o);
    const auto b = packing_backend();
    const auto packed = load_model(dir.path().string(), b).value();
    const auto plain = load_model(dir.path().string(), kernels::reference_backend()).value();
    const auto bytes = inspect_model(dir.path().string(), *b).value().weight_bytes;
    CHECK(packed.weights->info().weight_bytes == bytes);
    // Two layers of four matrices, the embedding and, where it is not tied, the head.
    CHECK(bytes == plain.weights->info().weight_bytes + header * (2 * 4 + (tied ? 1 : 2)));
    std::vector<std::vector<token_id>> out;
    for (model* m : {packed.weights.get(), plain.weights.get()}) {
      m->allocate_pages(2).value();
      const token_id prompt[] = {3, 4, 5};
      out.push_back(tests::greedy(*m, prompt, 20, 3));
    }
    CHECK(out[0] == out[1]);
  }
}

TEST_CASE("activations of int8 are for cpu alone, and every other device refuses them by name") {
  using kernels::activation_type;
  CHECK(parse_activations("f32").value() == activation_type::f32);
  CHECK(parse_activations("int8").value() == activation_type::int8);
  CHECK(parse_activations("int4").error().param == "activations");
  CHECK_THAT(parse_activations("int4").error().message, Contains("f32 or int8") && Contains("'int4'"));
  CHECK(std::string(make_backend("cpu", 1, false, activation_type::int8).value()->name)
            .ends_with(", int8 activations)"));
  for (const char* device : {"reference", "cuda", "cuda:0", "cuda:999"}) {
    const auto refused = make_backend(device, 1, false, activation_type::int8);
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::invalid_param);
    CHECK(refused.error().param == "activations");
    CHECK_THAT(refused.error().message, Contains("--activations int8") && Contains(device));
  }
  CHECK(make_backend("abacus", 1, false, activation_type::int8).error().param == "device");
}

TEST_CASE("a device that is not one, or not there, is refused by name, and auto is one that is there") {
  CHECK_THAT(make_backend("abacus", 1).error().message, Contains("'abacus'") && Contains("cuda[:N]"));
  for (const char* bad : {"cuda:", "cuda:x", "cuda:-1", "cuda:1x"})
    CHECK_THAT(make_backend(bad, 1).error().message, Contains(bad));
  CHECK_THAT(make_backend("cuda:999", 1).error().message, Contains("--device cuda:999: "));
  std::string why;
  const std::string best = best_device(why);
  CHECK(make_backend(best, 1).has_value());
  CHECK((best == "cuda:0" || !why.empty()));
}

TEST_CASE("auto is the cpu where there is no CUDA device, and never where there is one that fails") {
  using kernels::cuda_presence;
  std::string why;
  CHECK(best_device({cuda_presence::there, 1, ""}, why) == "cuda:0");
  CHECK(best_device({cuda_presence::failing, 0, "the driver is too old"}, why) == "cuda:0");
  CHECK(why == "");
  CHECK(best_device({cuda_presence::none, 0, "no CUDA driver is installed"}, why) == "cpu");
  CHECK(why == "no CUDA driver is installed");
}

}  // namespace weir::tests::load_test
