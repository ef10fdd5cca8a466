#include "core/model/load/experts.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "core/model/load/expert_names.h"
#include "core/model/load/fill.h"
#include "core/model/load/safetensors.h"
#include "core/model/load/turned_matrix.h"
#include "kernels/blocks.h"
#include "tests/support/seed.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::experts_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

// A model of one layer with these experts.
model_config config_of(std::uint32_t experts, std::uint32_t inter, std::uint32_t hidden, bool inputs_first) {
  model_config c;
  kernels::layer_shape layer;
  layer.mlp.inter = inter;
  layer.mlp.router.experts = experts;
  layer.mlp.router.chosen = 1;
  c.shape.hidden = hidden;
  c.shape.layers = {layer};
  c.stored.inputs_first = inputs_first;
  return c;
}

struct opened {
  tests::temporary_dir dir;
  checkpoint files;
  explicit opened(const std::vector<tests::toy_tensor>& all) : files(open(dir, all)) {}
  static checkpoint open(const tests::temporary_dir& dir, const std::vector<tests::toy_tensor>& all) {
    tests::write_file(dir / "model.safetensors", tests::safetensors_bytes(all));
    return open_safetensors(dir.path().string()).value();
  }
  std::vector<float> floats(const std::string& name) const {
    const stored_tensor* t = files.find(name);
    REQUIRE(t);
    std::uint64_t elements = 1;
    for (const auto n : t->shape) elements *= n;
    std::vector<float> out(elements);
    read_elements(files, *t, kernels::dtype::f32, 0, elements, reinterpret_cast<std::byte*>(out.data()))
        .value();
    return out;
  }
};

std::vector<float> values_of(const tests::toy_tensor& t) {
  std::vector<float> out(t.bytes.size() / 4);
  std::memcpy(out.data(), t.bytes.data(), t.bytes.size());
  return out;
}

}  // namespace

TEST_CASE("experts whose inputs come first and whose gate and up alternate are put in order") {
  constexpr std::uint32_t experts = 3, inter = 5, hidden = 7;
  std::mt19937 r(static_cast<unsigned>(tests::drawn_seed(1)));
  const std::string at = "model.layers.0.mlp.experts.";
  const auto both = tests::random_tensor(r, at + "gate_up_proj", "F32", {experts, hidden, 2 * inter}),
             bias = tests::random_tensor(r, at + "gate_up_proj_bias", "F32", {experts, 2 * inter}),
             down = tests::random_tensor(r, at + "down_proj", "F32", {experts, inter, hidden});
  opened m({both, bias, down});
  REQUIRE(arrange_experts(m.files, config_of(experts, inter, hidden, true)).has_value());
  const auto from = values_of(both), from_bias = values_of(bias), from_down = values_of(down);
  for (std::size_t e = 0; e < experts; ++e) {
    const std::string expert = at + std::to_string(e) + ".";
    const auto w = m.floats(expert + "gate_up_proj.weight"), b = m.floats(expert + "gate_up_proj.bias"),
               d = m.floats(expert + "down_proj.weight");
    for (std::size_t row = 0; row < 2 * inter; ++row) {
      const std::size_t column = row < inter ? 2 * row : 2 * (row - inter) + 1;
      CHECK(b[row] == from_bias[e * 2 * inter + column]);
      for (std::size_t i = 0; i < hidden; ++i)
        CHECK(w[row * hidden + i] == from[(e * hidden + i) * 2 * inter + column]);
    }
    for (std::size_t row = 0; row < hidden; ++row)
      for (std::size_t i = 0; i < inter; ++i)
        CHECK(d[row * inter + i] == from_down[(e * inter + i) * hidden + row]);
  }
}

TEST_CASE("any part of a turned matrix can be read") {
  constexpr std::uint64_t inputs = 70, outputs = 10;  // more inputs than are turned at once
  std::mt19937 r(static_cast<unsigned>(tests::drawn_seed(2)));
  opened m({tests::random_tensor(r, "t", "BF16", {inputs, outputs})});
  for (const bool paired : {false, true}) {
    const auto turned = make_turned(*m.files.find("t"), paired);
    std::vector<std::byte> whole(inputs * outputs * 2);
    REQUIRE(turned->read(m.files, 0, whole).has_value());
    for (std::size_t at = 0; at < whole.size(); at += 22)
      for (std::size_t count : {std::size_t{2}, std::size_t{148}, whole.size() - at}) {
        std::vector<std::byte> some(std::min(count, whole.size() - at));
        REQUIRE(turned->read(m.files, at, some).has_value());
        CHECK(std::memcmp(some.data(), whole.data() + at, some.size()) == 0);
      }
    CHECK(!turned->read_part(m.files, {}, {}).has_value());
  }
}

TEST_CASE("rows that alternate are read in order, however many at once") {
  constexpr std::uint64_t rows = 12, heads = 2;
  for (const std::uint64_t cols : {1u, 3u, 20'000u}) {  // of which two rows fill the reader's buffer
    std::mt19937 r(static_cast<unsigned>(tests::drawn_seed(3)));
    const auto t = tests::random_tensor(r, "t", "F32", {rows, cols});
    opened m({t});
    REQUIRE(m.files.pair_rows("t", heads, 0).has_value());
    const auto from = values_of(t), got = m.floats("t");
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t head = rows / heads, in = row % head,
                        file = row - in + 2 * (in % (head / 2)) + in / (head / 2);
      CHECK(std::equal(got.begin() + std::ptrdiff_t(row * cols),
                       got.begin() + std::ptrdiff_t((row + 1) * cols),
                       from.begin() + std::ptrdiff_t(file * cols)));
    }
    std::vector<std::byte> whole(rows * cols * 4), some;
    REQUIRE(m.files.read(*m.files.find("t"), 0, whole).has_value());
    for (const std::size_t at : {std::size_t{1}, std::size_t{cols * 4 - 1}, std::size_t{cols * 4 * 5 + 2}}) {
      some.resize(whole.size() - at);
      REQUIRE(m.files.read(*m.files.find("t"), at, some).has_value());
      CHECK(std::memcmp(some.data(), whole.data() + at, some.size()) == 0);
    }
  }
}

TEST_CASE("blocks of published experts are the numbers that their format defines") {
  const auto folder = tests::data_dir() / "quant" / "gpt-oss-mxfp4";
  if (!std::filesystem::exists(folder)) {
    WARN("no golden experts below " << tests::data_dir());
    return;
  }
  auto all = open_safetensors(folder.string()).value();
  REQUIRE(
      all.rename([](std::string_view name) { return "model.layers.0." + std::string(name); }).has_value());
  REQUIRE(arrange_experts(all, config_of(2, 128, 24, true)).has_value());
  const std::string file = tests::read_file(folder / "golden.safetensors");
  const auto golden = parse_safetensors(std::as_bytes(std::span(file)), "golden").value();
  const auto& wanted = golden.at("mlp.experts.down_proj");
  for (std::size_t e = 0; e < 2; ++e) {
    const stored_tensor* t =
        all.find("model.layers.0.mlp.experts." + std::to_string(e) + ".down_proj.weight");
    REQUIRE(t);
    CHECK(t->shape == std::vector<std::uint64_t>{24, 128});
    std::vector<std::byte> blocks(kernels::bytes_of(kernels::dtype::mxfp4, 24 * 128));
    REQUIRE(all.read(*t, 0, blocks).has_value());
    std::vector<float> got(24 * 128), want(24 * 128);
    kernels::dequantise(kernels::dtype::mxfp4, blocks.data(), got.size(), got.data());
    std::memcpy(want.data(), wanted.bytes.data() + e * want.size() * 4, want.size() * 4);
    CHECK(got == want);
  }
}

TEST_CASE("blocks of experts with wrong shapes, types or without scales are refused by their names") {
  const auto refusal = [](std::vector<std::uint64_t> blocks, const char* type,
                          std::vector<std::uint64_t> scales) {
    const auto tensor = [](const char* name, const char* dtype, const std::vector<std::uint64_t>& shape) {
      std::size_t bytes = std::string_view(dtype) == "U8" ? 1 : 2;
      for (const auto n : shape) bytes *= n;
      return tests::toy_tensor{name, dtype, shape, std::string(bytes, '\1')};
    };
    std::vector<tests::toy_tensor> all;
    if (!blocks.empty()) all.push_back(tensor("model.layers.0.mlp.experts.down_proj_blocks", type, blocks));
    if (!scales.empty()) all.push_back(tensor("model.layers.0.mlp.experts.down_proj_scales", "U8", scales));
    opened m(all);
    const auto ok = arrange_experts(m.files, config_of(2, 64, 8, true));
    return ok ? std::string("accepted") : ok.error().message;
  };
  CHECK(refusal({2, 8, 2, 16}, "U8", {2, 8, 2}) == "accepted");
  CHECK_THAT(refusal({2, 8, 2, 16}, "U8", {}), Contains("down_proj_scales' is missing"));
  CHECK_THAT(refusal({}, "U8", {2, 8, 2}),
             Contains("down_proj_scales' has scales of blocks that are missing"));
  CHECK_THAT(refusal({3, 8, 2, 16}, "U8", {2, 8, 2}), Contains("down_proj_blocks' is [3, 8, 2, 16]"));
  CHECK_THAT(refusal({2, 8, 2, 16}, "U8", {2, 8, 1}), Contains("down_proj_scales' is [2, 8, 1]"));
  CHECK_THAT(refusal({2, 8, 2, 16}, "BF16", {2, 8, 2}), Contains("down_proj_blocks' is BF16, not U8"));
}

TEST_CASE("every spelling of a tensor of experts leads to a name and back") {
  for (const auto& [there, here] :
       {std::pair{"block_sparse_moe.experts.12.w3.weight", "mlp.experts.12.up_proj.weight"},
        std::pair{"block_sparse_moe.gate.weight", "mlp.gate.weight"},
        std::pair{"block_sparse_moe.e_score_correction_bias", "mlp.gate.e_score_correction_bias"},
        std::pair{"mlp.moe_statics.e_score_correction_bias", "mlp.gate.e_score_correction_bias"},
        std::pair{"mlp.router.bias", "mlp.gate.bias"},
        std::pair{"shared_mlp.output_linear.weight", "mlp.shared_expert.down_proj.weight"},
        std::pair{"mlp.shared_experts.up_proj.weight", "mlp.shared_expert.up_proj.weight"}}) {
    CAPTURE(there);
    const expert_spelling* s = spelling_in_files(there);
    REQUIRE(s);
    CHECK(respelled(there, s->there, s->here) == here);
    CHECK(name_in_files(std::string("model.layers.7.") + here, {s}, {}) ==
          std::string("model.layers.7.") + there);
  }
  for (const char* plain : {"mlp.experts.3.up_proj.weight", "self_attn.q_proj.weight", "mlp.gate_proj.weight",
                            "block_sparse_moe.experts.x.w1.weight"})
    CHECK(!spelling_in_files(plain));
  CHECK(parse_layer_name("model.layers.31.mlp.gate.weight")->layer == 31);
  for (const char* other :
       {"model.layers.x.mlp", "model.layers.99999999999.a", "model.layers.3", "lm_head.weight"})
    CHECK(!parse_layer_name(other));
  CHECK(parse_merged("mlp.experts.gate_up_proj")->kind == merged_kind::weight);
  CHECK(parse_merged("mlp.experts.gate_up_proj_bias")->kind == merged_kind::bias);
  CHECK(!parse_merged("mlp.experts.3.gate_up_proj.weight"));
}

}  // namespace weir::tests::experts_test
