#include <catch2/catch.hpp>
#include <cmath>

#include "core/model/decoder_model.h"
#include "core/model/load.h"
#include "tests/support/drive.h"

namespace weir::tests::random_test {

using namespace weir::core;
using Catch::Matchers::Contains;

TEST_CASE("random models have the shapes that their names promise") {
  const auto bytes = [](const char* spec) {
    const auto m = parse_random_model(spec, 8192).value();
    CHECK(m.config.context == 8192);
    return static_cast<double>(
        plan_random_weights(m.config, m.type, *kernels::reference_backend()).value().bytes);
  };
  CHECK(bytes("tiny-110m:f32") == Approx(109.53e6 * 4).epsilon(0.001));
  CHECK(bytes("llama-3.2-1b") == Approx(2.4716e9).epsilon(0.001));
  CHECK(bytes("llama-3.2-1b:f16") == bytes("llama-3.2-1b:bf16"));
  CHECK(bytes("llama-3.1-8b:bf16") == Approx(16.0605e9).epsilon(0.001));
  CHECK(bytes("llama-3.1-70b:bf16") == Approx(141.107e9).epsilon(0.001));
  CHECK(bytes("gemma-3-12b:bf16") == Approx(23.5327e9).epsilon(0.001));
  CHECK(bytes("qwen3-30b-a3b:bf16") == Approx(61.1e9).epsilon(0.005));
  CHECK(bytes("gpt-oss-20b:bf16") == Approx(41.8e9).epsilon(0.005));
}

TEST_CASE("a random gpt-oss of mxfp4 has experts of mxfp4 and all else in bf16, as it is published") {
  const auto m = parse_random_model("gpt-oss-20b:mxfp4", 4096).value();
  const auto plan = plan_random_weights(m.config, m.type, *kernels::reference_backend()).value();
  const auto& layer = plan.weights.layers[0];
  CHECK(layer.experts.gate_up.first.type == kernels::dtype::mxfp4);
  CHECK(layer.experts.down.first.type == kernels::dtype::mxfp4);
  CHECK(layer.qkv.w.type == kernels::dtype::bf16);
  CHECK(plan.weights.head.type == kernels::dtype::bf16);
  CHECK(static_cast<double>(plan.bytes) == Approx(13.8e9).epsilon(0.01));
  CHECK_THAT(parse_random_model("gpt-oss-20b:q4_k", 100).error().message,
             Contains("rows of 2880 weights") && Contains("q4_k"));
}

TEST_CASE("a step of few rows reads the experts that its rows choose, and one of many rows nearly all") {
  random_model m = parse_random_model("tiny-moe-200m:bf16", 64).value();
  set_layers(m.config, 2, m.config.shape.layers.front());
  m.config.shape.vocab = 300;
  const auto made = make_random_model(m, kernels::reference_backend()).value();
  const auto& model = static_cast<const decoder_model&>(*made.weights);
  const std::uint64_t all = model.weights_of_a_step().size(), expert = 3 * 256 * 768 * 2;
  CHECK(all - model.bytes_of_a_step(1) == 2 * 28 * expert);  // 4 of 32 in each of two layers
  CHECK(all - model.bytes_of_a_step(1000) < expert);
  CHECK(model.bytes_of_a_step(8) > model.bytes_of_a_step(4));
  CHECK(model.linear_type() == kernels::dtype::bf16);
}

TEST_CASE("a random Gemma has its family's layers") {
  const auto shape = parse_random_model("gemma-3-12b", 8192).value().config.shape;
  const auto full =
      std::ranges::count_if(shape.layers, [](const auto& l) { return l.mixer.rule.window == 0; });
  CHECK((shape.layers.size() == 48 && full == 8 && shape.tables.size() == 2));
  CHECK(shape.layers[5].mixer.rotary == 0);
  CHECK(shape.layers[6].mixer.rotary == 1);
  CHECK(shape.layers[0].norms == kernels::norm_place::both);
  CHECK(shape.embed_factor == Approx(std::sqrt(3840.0)));
}

TEST_CASE("a random model that does not exist is refused, listing those that do") {
  CHECK_THAT(parse_random_model("llama-7b", 100).error().message,
             Contains("llama-7b") && Contains("tiny-110m"));
  CHECK_THAT(parse_random_model("tiny-110m:q4", 100).error().message, Contains("q4") && Contains("bf16"));
  CHECK(!parse_random_model("", 100));
}

TEST_CASE("random weights are the same numbers in every type") {
  random_model shape = parse_random_model("tiny-110m:f32", 64).value();
  set_layers(shape.config, 1, shape.config.shape.layers.front());
  shape.config.shape.vocab = 300;
  const auto wanted =
      random_weights(shape.config, kernels::dtype::f32, 9, kernels::reference_backend()).value();
  for (const auto type : {kernels::dtype::bf16, kernels::dtype::f16}) {
    const auto got = random_weights(shape.config, type, 9, kernels::reference_backend()).value();
    const auto same = [&](const kernels::matrix& a, const kernels::matrix& b) {
      REQUIRE(b.type == type);
      for (std::size_t i = 0; i < std::size_t{a.rows} * a.cols; ++i)
        if (kernels::load(a.data, a.type, i) != kernels::load(b.data, b.type, i)) return false;
      return true;
    };
    CHECK(same(wanted.embedding, got.embedding));
    CHECK(same(wanted.layers[0].down.w, got.layers[0].down.w));
    CHECK(wanted.layers[0].mlp_norm.weight[5] == got.layers[0].mlp_norm.weight[5]);
  }
}

TEST_CASE("random weights are never zero, repeat with their seed, and keep logits finite") {
  random_model shape = parse_random_model("tiny-110m:f32", 64).value();
  set_layers(shape.config, 2, shape.config.shape.layers.front());
  shape.config.shape.vocab = 500;
  for (const auto type : {kernels::dtype::f32, kernels::dtype::bf16, kernels::dtype::f16}) {
    shape.type = type;
    const auto w = random_weights(shape.config, type, 1, kernels::reference_backend()).value();
    double square = 0;
    const std::size_t count = std::size_t{w.embedding.rows} * w.embedding.cols;
    for (std::size_t i = 0; i < count; ++i) {
      const float x = kernels::load(w.embedding.data, type, i);
      REQUIRE(x != 0);
      square += double{x} * x;
    }
    CHECK(std::sqrt(square / static_cast<double>(count)) == Approx(0.035).epsilon(0.1));

    std::vector<std::vector<token_id>> out;
    for (const std::uint64_t seed : {1, 1, 2}) {
      const auto m = make_random_model(shape, kernels::cpu_backend(2), seed).value();
      m.weights->allocate_pages(1).value();
      const token_id prompt[] = {3, 4};
      out.push_back(tests::greedy(*m.weights, prompt, 20, 2));
      for (const float x : m.weights->logits(0)) REQUIRE(std::isfinite(x));
    }
    CHECK(out[0] == out[1]);
    CHECK(out[0] != out[2]);
    CHECK(out[0] != std::vector<token_id>(20, out[0][0]));
  }
}

}  // namespace weir::tests::random_test
