// A whole model with --activations int8 against the same model by plain loops, whose products round their
// activations by the definition and sum in double.
#include <catch2/catch.hpp>

#include "core/model/load.h"
#include "tests/kernels/rounded_activations.h"
#include "tests/support/drive.h"

namespace weir::tests::activations_test {

using namespace weir::core;

namespace {

using backend_ptr = std::shared_ptr<const kernels::backend>;

// The reference backend, with products that multiply rounded activations where the weights have such.
backend_ptr rounding_reference() {
  auto b = std::make_shared<kernels::backend>(*kernels::reference_backend());
  b->do_linear = [](void*, const kernels::linear& op) {
    kernels::linear rounded = op;
    std::vector<float> x(op.x, op.x + std::size_t{op.rows} * op.w.width());
    if (!kernels::is_plain(op.w.type)) {
      const auto all = tests::rounded_activations(x, op.w.width());
      std::copy(all.begin(), all.end(), x.begin());
    }
    rounded.x = x.data();
    const auto plain = kernels::reference_backend();
    plain->do_linear(plain->self, rounded);
  };
  return b;
}

random_model small(const char* type) {
  random_model m = parse_random_model(std::string("tiny-110m:") + type, 64).value();
  set_layers(m.config, 2, m.config.shape.layers.front());
  m.config.shape.vocab = 500;
  return m;
}

// The logits behind each of a prompt's last tokens, which come in slices of these lengths.
std::vector<std::vector<float>> logits_of(const random_model& shape, backend_ptr b,
                                          const std::vector<std::size_t>& cuts) {
  const auto m = std::move(make_random_model(shape, std::move(b)).value().weights);
  m->allocate_pages(2).value();
  tests::driven_sequence s(*m, 0, 2);
  std::vector<token_id> prompt;
  for (int i = 0; i < 40; ++i) prompt.push_back((i * 37 + 11) % 500);
  std::vector<std::vector<float>> out;
  for (const std::size_t rows : cuts) {
    const auto logits = s.feed(std::span(prompt).subspan(s.position(), rows), rows);
    out.emplace_back(logits.begin(), logits.end());
  }
  return out;
}

}  // namespace

TEST_CASE("a model with activations of int8 has the logits, and the best tokens, of its definition") {
  for (const char* type : {"q4_0", "q8_0", "q4_k", "q6_k"}) {
    const random_model shape = small(type);
    const auto cpu = make_backend("cpu", 2, false, kernels::activation_type::int8).value();
    const std::vector<std::size_t> cuts{20, 1, 1, 5, 1, 12};
    const auto wanted = logits_of(shape, rounding_reference(), cuts), got = logits_of(shape, cpu, cuts);
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      double largest = 0, worst = 0;
      for (std::size_t t = 0; t < wanted[i].size(); ++t) {
        largest = std::max(largest, std::abs(double{wanted[i][t]}));
        worst = std::max(worst, std::abs(double{wanted[i][t]} - got[i][t]));
      }
      CAPTURE(type, i, largest);
      // The last bit of a sum may move an activation to the code beside.
      CHECK(worst <= 5e-2 * largest);
      const auto best = tests::argmax(wanted[i]);
      auto others = wanted[i];
      others[static_cast<std::size_t>(best)] = -1e30f;
      const float second = *std::max_element(others.begin(), others.end());
      if (wanted[i][static_cast<std::size_t>(best)] - second > 0.1 * largest)
        CHECK(tests::argmax(got[i]) == best);
    }
  }
}

TEST_CASE("with activations of int8 a token's logits depend neither on slices nor on threads") {
  for (const char* type : {"q4_0", "q8_0", "q4_k", "q6_k"}) {
    const auto of = [&](unsigned threads, const std::vector<std::size_t>& cuts) {
      const auto cpu = make_backend("cpu", threads, false, kernels::activation_type::int8).value();
      return logits_of(small(type), cpu, cuts).back();
    };
    const auto whole = of(1, {40});
    CAPTURE(type);
    CHECK(of(3, {40}) == whole);
    CHECK(of(2, {7, 13, 1, 19}) == whole);
    CHECK(of(1, std::vector<std::size_t>(40, 1)) == whole);
  }
}

TEST_CASE("activations of int8 take no more memory for weights than f32") {
  for (const char* type : {"q4_0", "q8_0", "q4_k", "q6_k", "iq4_xs", "fp8"}) {
    const random_model shape = small(type);
    const auto bytes = [&](kernels::activation_type a) {
      return make_random_model(shape, make_backend("cpu", 1, false, a).value())
          .value()
          .weights->info()
          .weight_bytes;
    };
    CHECK(bytes(kernels::activation_type::int8) == bytes(kernels::activation_type::f32));
  }
}

}  // namespace weir::tests::activations_test
