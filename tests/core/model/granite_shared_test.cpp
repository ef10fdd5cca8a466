// Granite's mixtures with a shared expert: logits of plain loops in double, and those of the two families
// that have the same layers.
#include <catch2/catch.hpp>
#include <cstring>

#include "core/model/load.h"
#include "tests/support/difference.h"
#include "tests/support/drive.h"
#include "tests/support/plain_mixture.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::granite_shared_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

using u64 = std::uint64_t;

constexpr u64 hidden = 32, inter = 24, shared = 40, experts = 6, chosen = 3, layers = 2;

// The files of a Granite with experts, and what their weights are.
struct granite {
  std::vector<tests::toy_tensor> tensors;
  tests::plain_mixture wanted;
};

class writer {
 public:
  // `has_shared`: whether the layers have a shared expert.
  granite write(bool has_shared) {
    tests::plain_mixture& w = out_.wanted;
    w.hidden = hidden;
    w.layers = layers;
    w.heads = 4;
    w.kv_heads = 2;
    w.head_dim = 8;
    w.experts = experts;
    w.chosen = chosen;
    w.embed_factor = 3;
    w.branch_factor = 0.4;
    w.logit_factor = 0.5;
    w.weights["model.embed_tokens"] = add("model.embed_tokens", {tests::toy_vocab, hidden});
    for (u64 i = 0; i < layers; ++i) layer("model.layers." + std::to_string(i) + ".", has_shared);
    w.weights["model.norm"] = add("model.norm", {hidden});
    w.weights["lm_head"] = add("lm_head", {tests::toy_vocab, hidden});
    return std::move(out_);
  }

 private:
  using doubles = std::vector<double>;

  doubles add(const std::string& name, std::vector<u64> shape) {
    out_.tensors.push_back(tests::random_tensor(r_, name + ".weight", "F32", std::move(shape)));
    const std::string& bytes = out_.tensors.back().bytes;
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return {values.begin(), values.end()};
  }

  static doubles part(const doubles& all, u64 first, u64 count) {
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(first);
    return {at, at + static_cast<std::ptrdiff_t>(count)};
  }

  void layer(const std::string& at, bool has_shared) {
    auto& w = out_.wanted.weights;
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
      w[at + norm] = add(at + norm, {hidden});
    for (const auto& [name, rows] : {std::pair{"q_proj", 32}, {"k_proj", 16}, {"v_proj", 16}, {"o_proj", 32}})
      w[at + "self_attn." + name] = add(at + "self_attn." + name, {static_cast<u64>(rows), hidden});
    const std::string there = at + "block_sparse_moe.", here = at + "mlp.";
    w[here + "gate"] = add(there + "router.layer", {experts, hidden});
    const doubles first = add(there + "input_linear", {experts, 2 * inter, hidden}),
                  second = add(there + "output_linear", {experts, hidden, inter});
    constexpr u64 size = inter * hidden;
    for (u64 e = 0; e < experts; ++e) {
      const std::string expert = here + "experts." + std::to_string(e) + ".";
      w[expert + "gate_proj"] = part(first, 2 * e * size, size);
      w[expert + "up_proj"] = part(first, (2 * e + 1) * size, size);
      w[expert + "down_proj"] = part(second, e * size, size);
    }
    if (!has_shared) return;
    const doubles both = add(at + "shared_mlp.input_linear", {2 * shared, hidden});
    w[here + "shared_expert.gate_proj"] = part(both, 0, shared * hidden);
    w[here + "shared_expert.up_proj"] = part(both, shared * hidden, shared * hidden);
    w[here + "shared_expert.down_proj"] = add(at + "shared_mlp.output_linear", {hidden, shared});
  }

  // One seed: another one might put two scores of a router as close as rounding errors.
  std::mt19937 r_{31};
  granite out_;
};

boost::json::object config_of(u64 shared_inter) {
  return {{"intermediate_size", inter},    {"num_local_experts", experts},
          {"num_experts_per_tok", chosen}, {"shared_intermediate_size", shared_inter},
          {"embedding_multiplier", 3.0},   {"attention_multiplier", 0.2},
          {"residual_multiplier", 0.4},    {"logits_scaling", 2.0}};
}

struct directory {
  tests::temporary_dir dir;
  directory(const char* architecture, boost::json::object config,
            const std::vector<tests::toy_tensor>& tensors) {
    tests::toy_options o;
    o.architecture = architecture;
    o.hidden = hidden;
    o.config = std::move(config);
    tests::write_toy_directory(dir.path(), o);
    tests::write_file(dir / "model.safetensors", tests::safetensors_bytes(tensors));
  }
  std::vector<float> logits(const std::shared_ptr<const kernels::backend>& on,
                            const std::vector<token_id>& text) const {
    auto m = load_model(dir.path().string(), on);
    if (!m) FAIL(m.error().message);
    m->weights->allocate_pages(1).value();
    tests::driven_sequence s(*m->weights, 0, 1);
    const auto row = s.feed(text, text.size());
    return {row.begin(), row.end()};
  }
};

constexpr const char* family_name = "GraniteMoeSharedForCausalLM";
const std::vector<token_id> text{71, 114, 97, 110, 105, 116, 101, 32, 105, 115, 32, 104, 97, 114, 100};

}  // namespace

TEST_CASE("a Granite with a shared expert has the logits of plain loops") {
  const granite files = writer().write(true);
  const directory d(family_name, config_of(shared), files.tensors);
  for (const auto& on : {kernels::reference_backend(), kernels::cpu_backend(2)})
    for (const token_id token : {0, 7, 65, 130, 257}) {
      CAPTURE(on->name, token);
      const auto exact = files.wanted.logits(static_cast<std::size_t>(token));
      const std::vector<float> wanted(exact.begin(), exact.end());
      CHECK(tests::difference(wanted, d.logits(on, {token})) < 1e-5);
    }
}

TEST_CASE("a Granite with a shared expert is one of Granite 4 whose layers all attend") {
  const granite files = writer().write(true);
  auto hybrid = config_of(shared);
  hybrid["layer_types"] = boost::json::array{"attention", "attention"};
  hybrid["position_embedding_type"] = "rope";
  const directory d(family_name, config_of(shared), files.tensors),
      same("GraniteMoeHybridForCausalLM", hybrid, files.tensors);
  const auto on = kernels::reference_backend();
  CHECK(d.logits(on, text) == same.logits(on, text));
}

TEST_CASE("a Granite whose shared expert has no rows is one without") {
  const granite files = writer().write(false);
  auto without = config_of(0);
  const directory d(family_name, without, files.tensors);
  without.erase("shared_intermediate_size");
  const directory same("GraniteMoeForCausalLM", without, files.tensors);
  const auto on = kernels::reference_backend();
  CHECK(d.logits(on, text) == same.logits(on, text));
}

TEST_CASE("a shared expert of another size than the config says is refused by its tensor") {
  const granite files = writer().write(true);
  const directory d(family_name, config_of(shared + 8), files.tensors);
  const auto m = inspect_model(d.dir.path().string(), *kernels::reference_backend());
  REQUIRE(!m.has_value());
  CHECK_THAT(m.error().message,
             Contains("'model.layers.0.shared_mlp.input_linear.weight' is [80, 32]") && Contains("[96, 32]"));
}

}  // namespace weir::tests::granite_shared_test
