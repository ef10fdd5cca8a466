// Mixtures of experts: what configs say of them, and what files may have in their place.
#include "core/model/mixture.h"

#include <catch2/catch.hpp>

#include "core/model/decoder_model.h"
#include "core/model/generation_config.h"
#include "core/model/load.h"
#include "kernels/blocks.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::mixture_test {

using namespace weir::core;
using Catch::Matchers::Contains;
namespace json = boost::json;

namespace {

constexpr std::uint32_t toy_experts = 4, toy_inter = 32;

json::object merged(json::object all, const json::object& more) {
  for (const auto& [key, value] : more) all[key] = value;
  return all;
}

const json::object qwen_keys{{"num_experts", toy_experts},
                             {"num_experts_per_tok", 2},
                             {"moe_intermediate_size", toy_inter},
                             {"norm_topk_prob", true}};

tests::toy_options options(const char* architecture, json::object config) {
  tests::toy_options o;
  o.architecture = architecture;
  o.config = std::move(config);
  return o;
}

result<model_config> parse(const char* architecture, json::object config) {
  return parse_config(json::serialize(tests::toy_config(options(architecture, std::move(config)))),
                      "config.json");
}
result<model_config> qwen(const json::object& more) {
  return parse("Qwen3MoeForCausalLM", merged(qwen_keys, more));
}
result<model_config> glm(const json::object& more) {
  return parse("Glm4MoeForCausalLM", merged({{"n_routed_experts", 8}, {"moe_intermediate_size", 16}}, more));
}
result<model_config> ernie(const json::object& more) {
  return parse("Ernie4_5_MoeForCausalLM",
               merged({{"moe_num_experts", 8}, {"moe_k", 2}, {"moe_intermediate_size", 16}}, more));
}

std::string refusal(const result<model_config>& r) { return r ? "accepted" : r.error().message; }

const kernels::feed_forward& last_mlp(const result<model_config>& c) {
  return c.value().shape.layers.back().mlp;
}

// Which of the layers are mixtures: "dmm".
std::string kinds_of(const result<model_config>& c) {
  std::string out;
  for (const kernels::layer_shape& l : c.value().shape.layers) out += l.mlp.is_mixture() ? 'm' : 'd';
  return out;
}

// The tensors of a toy whose feed-forwards are four experts, named as Qwen names them.
std::vector<tests::toy_tensor> toy_mixture(const tests::toy_options& o) {
  std::mt19937 r(o.seed);
  std::vector<tests::toy_tensor> out;
  for (auto& t : tests::toy_tensors(o))
    if (t.name.find(".mlp.") == t.name.npos) out.push_back(std::move(t));
  const auto add = [&](std::string name, std::vector<std::uint64_t> shape) {
    out.push_back(tests::random_tensor(r, std::move(name), o.dtype, std::move(shape)));
  };
  for (std::uint32_t i = 0; i < o.layers; ++i) {
    const std::string mlp = "model.layers." + std::to_string(i) + ".mlp.";
    add(mlp + "gate.weight", {toy_experts, o.hidden});
    for (std::uint32_t e = 0; e < toy_experts; ++e) {
      const std::string expert = mlp + "experts." + std::to_string(e) + ".";
      add(expert + "gate_proj.weight", {toy_inter, o.hidden});
      add(expert + "up_proj.weight", {toy_inter, o.hidden});
      add(expert + "down_proj.weight", {o.hidden, toy_inter});
    }
  }
  return out;
}

tests::toy_options qwen_options() {
  tests::toy_options o = options("Qwen3MoeForCausalLM", qwen_keys);
  o.qk_norm = true;
  return o;
}

// A directory with these tensors, as the reference backend loads it.
struct toy {
  tests::temporary_dir dir;
  toy(const tests::toy_options& o, const std::vector<tests::toy_tensor>& tensors) {
    tests::write_toy_directory(dir.path(), o);
    tests::write_file(dir / "model.safetensors", tests::safetensors_bytes(tensors));
  }
  result<model_summary> inspect(const kernels::backend& on = *kernels::reference_backend()) const {
    return inspect_model(dir.path().string(), on);
  }
  std::string refusal() const {
    const auto m = inspect();
    return m ? "accepted" : m.error().message;
  }
};

template <class F>
std::string load_refusal(const F& change) {
  const auto o = qwen_options();
  auto tensors = toy_mixture(o);
  change(tensors);
  return toy(o, tensors).refusal();
}

tests::toy_tensor& named(std::vector<tests::toy_tensor>& all, const std::string& name) {
  return *std::find_if(all.begin(), all.end(), [&](const auto& t) { return t.name == name; });
}

}  // namespace

TEST_CASE("a mixture's router and experts are what the config says") {
  const auto q = qwen({});
  CHECK(kinds_of(q) == "mm");
  CHECK((last_mlp(q).router == kernels::expert_router{4, 2, false, false, true, 1}));
  CHECK((last_mlp(q).inter == 32 && last_mlp(q).shared == 0 && !last_mlp(q).shared_gate));
  json::object unsaid = qwen_keys;
  unsaid.erase("norm_topk_prob");
  CHECK(!last_mlp(parse("Qwen3MoeForCausalLM", unsaid)).router.renormalised);
  CHECK(last_mlp(qwen({{"num_experts", nullptr}, {"num_local_experts", 16}})).router.experts == 16);
  const auto g = glm({{"routed_scaling_factor", 1.5}, {"n_shared_experts", 2}, {"num_experts_per_tok", 3}});
  CHECK((last_mlp(g).router == kernels::expert_router{8, 3, true, true, true, 1.5f}));
  CHECK((last_mlp(g).shared == 32 && !last_mlp(g).shared_gate));
  CHECK(!last_mlp(glm({{"norm_topk_prob", false}, {"num_experts_per_tok", 3}})).router.renormalised);
  const auto two = parse("Qwen2MoeForCausalLM", merged(qwen_keys, {{"shared_expert_intermediate_size", 24}}));
  CHECK((last_mlp(two).shared == 24 && last_mlp(two).shared_gate && last_mlp(two).router_rows() == 5));
  const auto e = ernie({{"moe_num_shared_experts", 3}});
  CHECK((last_mlp(e).router == kernels::expert_router{8, 2, false, true, true, 1}));
  CHECK(last_mlp(e).shared == 48);
  CHECK(last_mlp(parse("MixtralForCausalLM", {})).router.experts == 8);
  const auto granite =
      parse("GraniteMoeHybridForCausalLM",
            {{"num_local_experts", 4}, {"num_experts_per_tok", 2}, {"shared_intermediate_size", 20}});
  CHECK((last_mlp(granite).inter == 48 && last_mlp(granite).shared == 20));
}

TEST_CASE("keys say which layers are dense") {
  CHECK(kinds_of(qwen({{"num_hidden_layers", 5}, {"mlp_only_layers", {1, 3}}})) == "mdmdm");
  CHECK(kinds_of(qwen({{"num_hidden_layers", 5}, {"decoder_sparse_step", 2}})) == "dmdmd");
  CHECK(kinds_of(glm({{"num_hidden_layers", 4}, {"first_k_dense_replace", 3}})) == "dddm");
  CHECK(kinds_of(glm({{"num_hidden_layers", 4}, {"first_k_dense_replace", 0}})) == "mmmm");
  CHECK(kinds_of(ernie({{"num_hidden_layers", 4}})) == "dmmm");
  CHECK(kinds_of(ernie({{"num_hidden_layers", 6},
                        {"moe_layer_start_index", 2},
                        {"moe_layer_interval", 2},
                        {"moe_layer_end_index", 4}})) == "dddmdd");
  const auto dense = glm({{"first_k_dense_replace", 1}}).value().shape.layers[0].mlp;
  CHECK((dense.inter == 48 && dense.shared == 0 && dense.router == kernels::expert_router{}));
}

TEST_CASE("a gpt-oss has sinks, a limit, biases and its family's defaults") {
  const auto c = parse("GptOssForCausalLM", {{"attention_bias", true}});
  REQUIRE(c.has_value());
  CHECK(last_mlp(c).router.experts == 128);
  CHECK(last_mlp(c).router.chosen == 4);
  CHECK((last_mlp(c).kind == kernels::activation::clamped && last_mlp(c).limit == 7));
  CHECK(c->shape.layers[0].mixer.sinks);
  CHECK((c->shape.layers[0].mixer.rule.window == 128 && c->shape.layers[1].mixer.rule.window == 0));
  CHECK((c->stored.router_bias && c->stored.expert_bias && c->stored.inputs_first));
  CHECK((c->ropes[0].type == rope_type::yarn && !c->ropes[0].truncate));
  CHECK(c->notes.empty());
  const auto other = parse("GptOssForCausalLM", {{"swiglu_limit", 4}});
  CHECK(last_mlp(other).limit == 7);  // as transformers, which does not read the key
  REQUIRE(other->notes.size() == 1);
  CHECK_THAT(other->notes[0], Contains("swiglu_limit is 4") && Contains("computed with 7"));
}

TEST_CASE("a wrong value of a mixture's key is refused by the key's name") {
  CHECK_THAT(refusal(qwen({{"num_experts", 0}})), Contains("num_experts") && Contains("1 to 1024"));
  CHECK_THAT(refusal(qwen({{"num_experts", 1000000}})), Contains("num_experts") && Contains("1 to 1024"));
  CHECK_THAT(refusal(qwen({{"num_experts", nullptr}})), Contains("'num_experts' is missing"));
  CHECK_THAT(refusal(qwen({{"num_local_experts", 9}})), Contains("num_local_experts"));
  CHECK_THAT(refusal(qwen({{"num_hidden_layers", 1024}, {"num_experts", 1024}})),
             Contains("'num_experts' 1024 in 1024 layers"));
  CHECK_THAT(refusal(qwen({{"num_experts_per_tok", 5}})),
             Contains("'num_experts_per_tok' is 5") && Contains("4 experts"));
  CHECK_THAT(refusal(qwen({{"num_experts_per_tok", 0}})), Contains("num_experts_per_tok"));
  CHECK_THAT(refusal(ernie({{"moe_k", 9}})), Contains("'moe_k' is 9"));
  CHECK_THAT(refusal(qwen({{"moe_intermediate_size", nullptr}})), Contains("moe_intermediate_size"));
  CHECK_THAT(refusal(qwen({{"moe_intermediate_size", 1 << 24}})), Contains("4 experts of a side of"));
  CHECK_THAT(refusal(qwen({{"mlp_only_layers", {2}}})), Contains("mlp_only_layers"));
  CHECK_THAT(refusal(qwen({{"mlp_only_layers", "x"}})), Contains("mlp_only_layers"));
  CHECK_THAT(refusal(qwen({{"decoder_sparse_step", 0}})), Contains("decoder_sparse_step"));
  CHECK_THAT(refusal(glm({{"first_k_dense_replace", -1}})), Contains("first_k_dense_replace"));
  CHECK_THAT(refusal(glm({{"routed_scaling_factor", 0}})), Contains("routed_scaling_factor"));
  CHECK_THAT(refusal(parse("GptOssForCausalLM", {{"swiglu_limit", 0}})), Contains("swiglu_limit"));
}

TEST_CASE("another way to choose experts than the family's is refused by the key's name") {
  const auto refused = [](const result<model_config>& c, const char* why) {
    REQUIRE(!c.has_value());
    CHECK(c.error().code == errc::not_supported);
    CHECK_THAT(c.error().message, Contains(why));
  };
  refused(glm({{"n_group", 8}}), "n_group");
  refused(glm({{"topk_group", 4}}), "topk_group");
  refused(qwen({{"scoring_func", "sigmoid"}}), "scoring_func 'sigmoid'");
  refused(qwen({{"routed_scaling_factor", 2.5}}), "routed_scaling_factor");
  refused(parse("MixtralForCausalLM", {{"norm_topk_prob", false}}), "norm_topk_prob");
  refused(parse("MiniMaxM2ForCausalLM",
                {{"num_local_experts", 4}, {"num_experts_per_tok", 2}, {"use_routing_bias", false}}),
          "use_routing_bias");
  refused(qwen({{"swiglu_limit", 7}}), "swiglu_limit");
  refused(parse("GptOssForCausalLM", {{"swiglu_alpha", 1.5}}), "swiglu_alpha");
  refused(qwen({{"use_sliding_window", true}, {"sliding_window", 64}}), "use_sliding_window");
  refused(parse("LlamaForCausalLM", {{"num_experts", 8}}), "num_experts");
}

TEST_CASE("gpt-oss and GLM stop at the tokens of both files, other families at those of the newer one") {
  const auto stops = [](const char* architecture, const json::object& keys) {
    const auto c = parse(architecture, merged(keys, {{"eos_token_id", {5, 6}}})).value();
    return parse_generation_config(R"({"eos_token_id":[7,6]})", c, "g").value().stop_ids;
  };
  CHECK(stops("GptOssForCausalLM", {}) == std::vector<token_id>{7, 6, 5});
  CHECK(stops("Qwen3MoeForCausalLM", qwen_keys) == std::vector<token_id>{7, 6});
}

TEST_CASE("experts lie behind each other, a multiple of 256 bytes apart") {
  const auto o = qwen_options();
  const toy t(o, toy_mixture(o));
  const auto summary = t.inspect();
  REQUIRE(summary.has_value());
  const auto config = summary->config;
  const auto loaded = load_model(t.dir.path().string(), kernels::reference_backend());
  REQUIRE(loaded.has_value());
  CHECK(loaded->weights->info().weight_bytes == summary->weight_bytes);
  const auto planned = plan_random_weights(config, kernels::dtype::bf16, *kernels::reference_backend());
  const auto& e = planned.value().weights.layers[1].experts;
  CHECK((e.gate_up.count == 4 && e.gate_up.first.rows == 64 && e.gate_up.first.cols == 32));
  CHECK((e.down.count == 4 && e.down.first.rows == 32 && e.down.first.cols == 32));
  CHECK((e.gate_up.stride == 64 * 32 * 2 && e.down.stride == 32 * 32 * 2));
}

TEST_CASE("tensors of experts that are missing, wrong or of different types are refused by their names") {
  CHECK(load_refusal([](auto&) {}) == "accepted");
  CHECK_THAT(load_refusal([](auto& all) {
               std::erase_if(all, [](const auto& t) {
                 return t.name == "model.layers.1.mlp.experts.2.up_proj.weight";
               });
             }),
             Contains("'model.layers.1.mlp.experts.2.up_proj.weight' [32, 32] is missing"));
  CHECK_THAT(load_refusal([](auto& all) {
               auto& router = named(all, "model.layers.0.mlp.gate.weight");
               router.shape = {5, 32};
               router.bytes.resize(5 * 32 * 4);
             }),
             Contains("'model.layers.0.mlp.gate.weight' is [5, 32]") && Contains("[4, 32]"));
  CHECK_THAT(load_refusal([](auto& all) {
               auto more = named(all, "model.layers.0.mlp.experts.0.up_proj.weight");
               more.name = "model.layers.0.mlp.experts.4.up_proj.weight";
               all.push_back(std::move(more));
             }),
             Contains("'model.layers.0.mlp.experts.4.up_proj.weight'") && Contains("implies no such tensor"));
}

TEST_CASE("names of Mixtral's files are those that errors give") {
  auto o =
      options("MixtralForCausalLM", {{"num_local_experts", toy_experts}, {"intermediate_size", toy_inter}});
  auto tensors = toy_mixture(o);
  for (auto& t : tensors) {
    const auto replace = [&](std::string_view from, std::string_view to) {
      if (const auto at = t.name.find(from); at != t.name.npos) t.name.replace(at, from.size(), to);
    };
    replace("mlp.", "block_sparse_moe.");
    replace("gate_proj", "w1");
    replace("up_proj", "w3");
    replace("down_proj", "w2");
  }
  CHECK(toy(o, tensors).refusal() == "accepted");
  std::erase_if(
      tensors, [](const auto& t) { return t.name == "model.layers.0.block_sparse_moe.experts.3.w2.weight"; });
  CHECK_THAT(toy(o, tensors).refusal(), Contains("'model.layers.0.block_sparse_moe.experts.3.w2.weight'"));
}

TEST_CASE("merged experts are those of separate tensors, and a wrong shape is refused by its name") {
  const auto o = qwen_options();
  const auto separate = toy_mixture(o);
  auto merged_ones = separate;
  std::erase_if(merged_ones, [](const auto& t) { return t.name.find(".experts.") != t.name.npos; });
  auto all = separate;
  for (std::uint32_t i = 0; i < o.layers; ++i) {
    const std::string mlp = "model.layers." + std::to_string(i) + ".mlp.experts.";
    tests::toy_tensor first{mlp + "gate_up_proj", "F32", {toy_experts, 2 * toy_inter, o.hidden}, {}},
        second{mlp + "down_proj", "F32", {toy_experts, o.hidden, toy_inter}, {}};
    for (std::uint32_t e = 0; e < toy_experts; ++e) {
      const std::string expert = mlp + std::to_string(e) + ".";
      first.bytes +=
          named(all, expert + "gate_proj.weight").bytes + named(all, expert + "up_proj.weight").bytes;
      second.bytes += named(all, expert + "down_proj.weight").bytes;
    }
    merged_ones.push_back(std::move(first));
    merged_ones.push_back(std::move(second));
  }
  const auto bytes_of = [&](const std::vector<tests::toy_tensor>& tensors) {
    const toy t(o, tensors);
    const auto m = load_model(t.dir.path().string(), kernels::reference_backend());
    REQUIRE(m.has_value());
    const auto w = static_cast<const decoder_model&>(*m->weights).weights_of_a_step();
    return std::vector<std::byte>(w.begin(), w.end());
  };
  CHECK(bytes_of(separate) == bytes_of(merged_ones));
  merged_ones.back().shape = {toy_experts + 1, o.hidden, toy_inter};
  merged_ones.back().bytes.resize((toy_experts + 1) * o.hidden * toy_inter * 4);
  CHECK_THAT(toy(o, merged_ones).refusal(),
             Contains("'model.layers.1.mlp.experts.down_proj' is [5, 32, 32]") && Contains("[4, 32, 32]"));
}

TEST_CASE("layers that draft tokens are passed over, and a note says so") {
  const auto o = options("Glm4MoeForCausalLM", merged(qwen_keys, {{"num_experts", nullptr},
                                                                  {"n_routed_experts", toy_experts},
                                                                  {"n_shared_experts", 0},
                                                                  {"first_k_dense_replace", 0},
                                                                  {"num_nextn_predict_layers", 1}}));
  auto tensors = toy_mixture(o);
  std::mt19937 r(3);
  for (const char* i : {"0", "1"})
    tensors.push_back(tests::random_tensor(
        r, std::string("model.layers.") + i + ".mlp.gate.e_score_correction_bias", "F32", {toy_experts}));
  tensors.push_back(tests::random_tensor(r, "model.layers.2.eh_proj.weight", "F32", {32, 64}));
  const auto m = toy(o, tensors).inspect();
  REQUIRE(m.has_value());
  REQUIRE(m->notes.size() == 1);
  CHECK_THAT(m->notes[0], Contains("1 tensors of draft layers") && Contains("model.layers.2.eh_proj.weight"));
  tensors.back().name = "model.layers.3.eh_proj.weight";
  CHECK_THAT(toy(o, tensors).refusal(), Contains("model.layers.3.eh_proj.weight"));
}

namespace {

// Puts the tensors of gptq, with 4 bits and zeros in them, in the place of a plain linear. `scattered`: the
// inputs of a group are not consecutive.
void quantise(std::vector<tests::toy_tensor>& all, const std::string& linear, bool scattered) {
  auto& plain = named(all, linear + ".weight");
  const std::uint64_t outputs = plain.shape[0], inputs = plain.shape[1], groups = inputs / 32;
  plain = {linear + ".qweight", "I32", {inputs / 8, outputs}, std::string(inputs / 8 * outputs * 4, '\0')};
  all.push_back(
      {linear + ".qzeros", "I32", {groups, outputs / 8}, std::string(groups * outputs / 8 * 4, '\0')});
  all.push_back({linear + ".scales", "F16", {groups, outputs}, std::string(groups * outputs * 2, '\0')});
  tests::toy_tensor order{linear + ".g_idx", "I32", {inputs}, std::string(inputs * 4, '\0')};
  for (std::uint64_t k = 0; k < inputs; ++k)
    order.bytes[k * 4] = static_cast<char>(scattered ? k % groups : k / 32);
  all.push_back(std::move(order));
}

// A toy whose linears with a name of this end, in all layers and experts, are of gptq.
std::string quantised_refusal(const std::vector<std::string>& ends, bool scattered) {
  auto o = qwen_options();
  o.hidden = 64;
  o.config["quantization_config"] =
      json::object{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"desc_act", true}};
  auto tensors = toy_mixture(o);
  std::vector<std::string> names;
  for (const auto& t : tensors)
    for (const std::string& end : ends)
      if (t.name.ends_with(end + ".weight") && t.name.find(".experts.") != t.name.npos)
        names.push_back(t.name.substr(0, t.name.size() - 7));
  for (const std::string& name : names) quantise(tensors, name, scattered);
  return toy(o, tensors).refusal();
}

}  // namespace

TEST_CASE(
    "experts of quantised directories are read, except for those with an order of inputs of their own") {
  CHECK(quantised_refusal({"gate_proj", "up_proj", "down_proj"}, false) == "accepted");
  CHECK_THAT(quantised_refusal({"gate_proj", "up_proj", "down_proj"}, true),
             Contains("'model.layers.0.mlp.experts.0.gate_proj.weight'") && Contains("another order"));
  CHECK_THAT(quantised_refusal({"up_proj"}, false),
             Contains("'model.layers.0.mlp.experts.0.gate_proj.weight'") &&
                 Contains("experts.0.up_proj.weight'") && Contains("types f32 and int4"));
}

TEST_CASE("a device without operations for experts refuses a mixture by its name") {
  const auto o = qwen_options();
  const toy t(o, toy_mixture(o));
  auto b = *kernels::reference_backend();
  b.do_route = nullptr;
  const auto m = t.inspect(b);
  REQUIRE(!m.has_value());
  CHECK(m.error().code == errc::not_supported);
  CHECK_THAT(m.error().message, Contains("reference") && Contains("mixtures of experts"));
}

}  // namespace weir::tests::mixture_test
