// What the keys of each architecture mean, and what is refused by the key's or tensor's name.
#include "core/model/load/gguf_config.h"

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "core/model/load/gguf.h"
#include "core/model/load/gguf_names.h"
#include "tests/support/gguf_bytes.h"

namespace weir::tests::gguf_config_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

constexpr std::uint32_t hidden = 96, heads = 4, head_dim = 16;

// A file of 6 layers, without what only some architectures have.
struct described {
  std::string name;
  gguf_writer w;

  explicit described(std::string architecture, std::uint32_t layers = 6) : name(std::move(architecture)) {
    w.text("general.architecture", name);
    number("block_count", layers).number("context_length", 1024).number("embedding_length", hidden);
    number("feed_forward_length", 64).number("attention.head_count", heads);
    number("attention.head_count_kv", 2).number("attention.key_length", head_dim);
    real("attention.layer_norm_rms_epsilon", 1e-5f).real("attention.layer_norm_epsilon", 1e-5f);
    w.texts("tokenizer.ggml.tokens", {"a", "b", "c"});
  }
  described& number(const std::string& key, std::uint32_t x) {
    w.number(name + "." + key, x);
    return *this;
  }
  described& real(const std::string& key, float x) {
    w.real(name + "." + key, x);
    return *this;
  }
  described& text(const std::string& key, const std::string& x) {
    w.text(name + "." + key, x);
    return *this;
  }
  described& flag(const std::string& key, bool x) {
    w.flag(name + "." + key, x);
    return *this;
  }
  described& flags(const std::string& key, const std::vector<std::uint8_t>& all) {
    w.numbers<std::uint8_t>(name + "." + key, 7, all);
    return *this;
  }
  described& floats(const std::string& tensor, const std::vector<float>& all) {
    std::string bytes;
    for (const float x : all) bytes += raw(x);
    w.tensor({tensor, {all.size()}, 0, bytes});
    return *this;
  }

  result<model_config> parsed() const {
    const std::string bytes = w.file();
    const auto file = parse_gguf(std::as_bytes(std::span(bytes)), "m.gguf").value();
    gguf_reader keys(file.keys, "m.gguf");
    const gguf_architecture* a = gguf_architecture_of(keys);
    const read_tensor read = [](const stored_tensor& t, std::span<std::byte> to) -> result<void> {
      std::memcpy(to.data(), t.bytes.data(), to.size());
      return {};
    };
    boost::json::object document;
    if (a) document = gguf_config(keys, *a, file.tensors, read);
    if (keys.failure()) return *keys.failure();
    auto config = parse_config(boost::json::serialize(document), "m.gguf");
    if (config) config->stored = gguf_form(config->stored, *a, file.tensors);
    return config;
  }
  model_config config() const {
    auto c = parsed();
    if (!c) FAIL(c.error().message);
    return *c;
  }
  std::string refusal() const {
    const auto c = parsed();
    return c ? "accepted" : c.error().message;
  }
};

// One letter a layer: w slides, - does not; in capitals where it does not turn.
std::string layers_of(const model_config& c) {
  std::string out;
  for (const auto& l : c.shape.layers) {
    const bool slides = l.mixer.rule.window > 0, turns = l.mixer.rotary >= 0;
    out += slides ? (turns ? 'w' : 'W') : (turns ? '-' : '=');
  }
  return out;
}

float scale_of(const model_config& c) { return c.shape.layers.front().mixer.rule.scale; }

}  // namespace

TEST_CASE("every architecture's row names families that there are") {
  const std::string names = gguf_architecture_names();
  std::size_t at = 0, count = 0;
  while (at < names.size()) {
    const std::size_t end = std::min(names.find(", ", at), names.size());
    const std::string name = names.substr(at, end - at);
    CAPTURE(name);
    const gguf_architecture* a = find_gguf_architecture(name);
    REQUIRE(a);
    CHECK(find_family(a->family));
    CHECK((a->windowed.empty() || find_family(a->windowed)));
    CHECK((a->mixture.empty() || find_family(a->mixture)));
    ++count;
    at = end + 2;
  }
  CHECK(count == 26);
  CHECK(!find_gguf_architecture("mamba2"));
}

TEST_CASE("names of tensors are turned to Hugging Face's and back, by the family's names of norms") {
  const auto names_of = [](const char* architecture) {
    const gguf_architecture& a = *find_gguf_architecture(architecture);
    return gguf_names(a, *find_family(a.family));
  };
  const auto check = [](const gguf_names& names, const std::string& gguf, const std::string& there) {
    CHECK(names.hugging_face_name(gguf) == there);
    CHECK(names.gguf_name(there) == gguf);
  };
  const std::string layer = "model.layers.12.";
  check(names_of("llama"), "blk.12.ffn_norm.weight", layer + "post_attention_layernorm.weight");
  check(names_of("llama"), "blk.12.attn_q.bias", layer + "self_attn.q_proj.bias");
  check(names_of("gemma2"), "blk.12.ffn_norm.weight", layer + "pre_feedforward_layernorm.weight");
  check(names_of("gemma2"), "blk.12.post_attention_norm.weight", layer + "post_attention_layernorm.weight");
  check(names_of("olmo2"), "blk.12.post_ffw_norm.weight", layer + "post_feedforward_layernorm.weight");
  check(names_of("glm4"), "blk.12.post_attention_norm.weight", layer + "post_self_attn_layernorm.weight");
  check(names_of("glm4"), "blk.12.ffn_up.weight", layer + "mlp.gate_up_proj.weight");
  check(names_of("seed_oss"), "blk.12.post_attention_norm.weight", layer + "post_attention_layernorm.weight");
  check(names_of("nemotron"), "output_norm.bias", "model.norm.bias");
  check(names_of("nemotron"), "blk.12.attn_norm.bias", layer + "input_layernorm.bias");
  check(names_of("muse-glimmer"), "blk.12.attn_gate.weight", layer + "self_attn.gate_proj.weight");
  for (const char* odd : {"", "blk", "blk.", "blk.0", "blk.0.attn_q", "blk..attn_q.weight",
                          "rope_freqs.weight", "blk.0.post_ffw_norm.weight"})
    CHECK(names_of("llama").hugging_face_name(odd) == odd);
}

TEST_CASE("gemma2: every second layer is full, scores have caps, and the largest model a scale of its own") {
  const auto c = described("gemma2").config();
  CHECK(layers_of(c) == "w-w-w-");
  CHECK(c.shape.layers[0].mixer.rule.window == 4096);
  CHECK(c.shape.layers[0].mixer.rule.cap == 50);
  CHECK(c.shape.logit_cap == 30);
  CHECK(scale_of(c) == 1 / std::sqrt(16.0f));
  CHECK(!c.stored.plus_one);
  CHECK(scale_of(described("gemma2", 46).config()) == 1 / std::sqrt(24.0f));
  auto none = described("gemma2").real("attn_logit_softcapping", 0).number("attention.sliding_window", 8);
  CHECK(none.config().shape.layers[0].mixer.rule.cap == 0);
  CHECK(none.config().shape.layers[0].mixer.rule.window == 8);
  CHECK_THAT(described("gemma2").real("rope.freq_base_swa", 500).refusal(),
             Contains("'gemma2.rope.freq_base_swa' other than rope.freq_base is not supported"));
}

TEST_CASE("gemma3: five of six layers slide, with a base of their own and without the factor of the others") {
  described d("gemma3");
  d.number("attention.sliding_window", 32).real("rope.freq_base", 1e6f);
  d.text("rope.scaling.type", "linear").real("rope.scaling.factor", 8);
  const auto c = d.config();
  CHECK(layers_of(c) == "wwwww-");
  REQUIRE(c.ropes.size() == 2);
  CHECK((c.ropes[0].theta == 1e6 && c.ropes[0].factor == 8));
  CHECK((c.ropes[1].theta == 10000 && c.ropes[1].type == rope_type::plain));
  CHECK((c.shape.layers[0].mixer.rotary == 1 && c.shape.layers[5].mixer.rotary == 0));
  CHECK(d.real("rope.freq_base_swa", 500).config().ropes[1].theta == 500);
  CHECK(layers_of(described("gemma3").config()) == "------");
  CHECK(scale_of(described("gemma3", 62).config()) == 1 / std::sqrt(24.0f));
}

TEST_CASE("the pattern of sliding layers is a number or a bool for each layer") {
  const auto sliding = [] { return described("olmo2").number("attention.sliding_window", 32); };
  constexpr const char* key = "attention.sliding_window_pattern";
  CHECK(layers_of(sliding().config()) == "www-ww");
  CHECK(layers_of(sliding().number(key, 2).config()) == "w-w-w-");
  CHECK(layers_of(sliding().number(key, 1).config()) == "------");
  CHECK(layers_of(sliding().number(key, 0).config()) == "wwwwww");
  CHECK(layers_of(sliding().flags(key, {1, 0, 0, 1, 1, 0}).config()) == "w--ww-");
  CHECK_THAT(sliding().flags(key, {1, 0, 0}).refusal(),
             Contains("'olmo2.attention.sliding_window_pattern' must have a bool for each of 6 layers"));
  CHECK_THAT(described("llama").number(key, 2).refusal(),
             Contains("key 'llama.attention.sliding_window_pattern' is not supported"));
}

TEST_CASE("olmo2 with a window is OLMo 3, whose sliding layers keep the plain rotation") {
  CHECK(described("olmo2").config().architecture == "Olmo2ForCausalLM");
  described d("olmo2");
  d.number("attention.sliding_window", 32).real("rope.freq_base", 5e5f);
  d.text("rope.scaling.type", "yarn").real("rope.scaling.factor", 4);
  const auto c = d.config();
  CHECK(c.architecture == "Olmo3ForCausalLM");
  REQUIRE(c.ropes.size() == 2);
  CHECK((c.ropes[0].type == rope_type::yarn && c.ropes[1].type == rope_type::plain));
  CHECK(c.ropes[1].theta == 5e5);
}

TEST_CASE(
    "layers that do not turn: full ones of cohere2 and exaone4, every fourth of smollm3, all of granite") {
  const auto cohere = [] { return described("cohere2").real("logit_scale", 0.25f); };
  CHECK(layers_of(cohere().number("attention.sliding_window", 32).config()) == "www=ww");
  CHECK_THAT(cohere().refusal(), Contains("'cohere2.attention.sliding_window' is missing"));
  CHECK(layers_of(described("exaone4").number("attention.sliding_window", 32).config()) == "www=ww");
  CHECK(layers_of(described("exaone4").config()) == "------");
  CHECK(layers_of(described("smollm3").config()) == "---=--");
  const auto granite = [] { return described("granite").real("logit_scale", 4); };
  CHECK(layers_of(granite().config()) == "------");
  CHECK(layers_of(granite().flag("rope.scaling.finetuned", false).config()) == "======");
}

TEST_CASE("granite: scales, and state space layers by their heads") {
  for (const char* name : {"granite", "granitehybrid"}) {
    described d(name);
    CHECK_THAT(d.refusal(), Contains(fmt::format("'{}.logit_scale' is missing", name)));
    d.real("logit_scale", 4).real("embedding_scale", 3).real("residual_scale", 0.5f);
    d.real("attention.scale", 0.125f).number("ssm.conv_kernel", 4);
    const auto c = d.config();
    CHECK((c.shape.logit_factor == 0.25f && c.shape.embed_factor == 3));
    CHECK((c.shape.layers[0].branch_factor == 0.5f && scale_of(c) == 0.125f));
    CHECK(c.stored.side_by_side);
  }
  described mixed("granitehybrid");
  mixed.real("logit_scale", 4);
  std::erase_if(mixed.w.keys, [](const auto& k) { return k.find("head_count_kv") != k.npos; });
  mixed.w.numbers<std::uint32_t>("granitehybrid.attention.head_count_kv", 4, {0, 0, 2, 0, 0, 2});
  CHECK_THAT(mixed.refusal(), Contains("'granitehybrid.attention.head_count_kv' differs between layers"));
}

TEST_CASE("command-r: no scale of logits where no key has one, and norms of heads where the file has them") {
  const auto plain = described("command-r").config();
  CHECK(plain.shape.logit_factor == 1);
  CHECK(plain.shape.layers[0].mixer.norms == kernels::head_norms::none);
  described d("command-r");
  d.real("logit_scale", 0.0625f).floats("blk.0.attn_q_norm.weight", {1});
  CHECK(d.config().shape.logit_factor == 0.0625f);
  CHECK(d.config().shape.layers[0].mixer.norms == kernels::head_norms::own);
}

TEST_CASE("the part of a head that turns") {
  CHECK(described("glm4").number("rope.dimension_count", 8).config().ropes[0].turned(head_dim) == 8);
  CHECK(described("glm4").config().ropes[0].turned(head_dim) == head_dim);
  CHECK(described("nemotron").config().ropes[0].turned(head_dim) == head_dim);
  for (std::uint32_t n = 2; n <= 80; n += 2) {
    described d("phi3");
    std::erase_if(d.w.keys, [](const auto& k) { return k.find("key_length") != k.npos; });
    d.number("attention.key_length", 80).number("rope.dimension_count", n);
    CHECK(d.config().ropes[0].turned(80) == n);
  }
  CHECK_THAT(described("glm4").number("rope.dimension_count", 7).refusal(),
             Contains("'glm4.rope.dimension_count' is 7, not an even number up to the 16"));
  CHECK_THAT(described("glm4").number("rope.dimension_count", 18).refusal(), Contains("is 18, not an even"));
  CHECK_THAT(described("seed_oss").number("rope.dimension_count", 8).refusal(),
             Contains("'seed_oss.rope.dimension_count' other than key_length"));
}

TEST_CASE("yarn: its factor, its ramp, and the factors of cosine and sine") {
  const auto yarn = [](const char* name) {
    described d(name);
    d.text("rope.scaling.type", "yarn").real("rope.scaling.factor", 4);
    d.number("rope.scaling.original_context_length", 256);
    return d;
  };
  const auto c = yarn("llama").real("rope.scaling.yarn_beta_fast", 16).config();
  CHECK((c.ropes[0].type == rope_type::yarn && c.ropes[0].factor == 4));
  CHECK((c.ropes[0].original_context == 256 && c.ropes[0].beta_fast == 16));
  CHECK(c.shape.tables[0].factor == Approx(1 + 0.1 * std::log(4.0)));
  CHECK(yarn("llama").real("rope.scaling.yarn_attn_factor", 1.25f).config().shape.tables[0].factor == 1.25f);
  CHECK(yarn("llama").real("rope.scaling.yarn_log_multiplier", 1).config().shape.tables[0].factor == 1);
  CHECK_THAT(yarn("llama").real("rope.scaling.yarn_ext_factor", 0.5f).refusal(),
             Contains("'llama.rope.scaling.yarn_ext_factor' other than 1"));
  CHECK_THAT(yarn("llama").real("rope.scaling.attn_factor", 1.5f).refusal(),
             Contains("'llama.rope.scaling.attn_factor' beside a rotation of type 'yarn'"));
  CHECK_THAT(yarn("phi3").floats("rope_factors_long.weight", {1, 1, 1, 1, 1, 1, 1, 1}).refusal(),
             Contains("'phi3.rope.scaling.type' yarn beside rope_factors_long.weight"));

  const auto grows = yarn("mistral3").real("attention.temperature_scale", 0.1f).config();
  CHECK(grows.shape.layers[0].mixer.rule.growth == 0.1f);
  CHECK(grows.shape.layers[0].mixer.rule.growth_unit == 256);
  CHECK_THAT(yarn("llama").real("attention.temperature_scale", 0.1f).refusal(),
             Contains("key 'llama.attention.temperature_scale' is not supported"));
}

TEST_CASE("longrope: its divisors are tensors, with or without a name of the type") {
  const std::vector<float> few{1, 1, 1, 1, 1, 1, 1, 2}, many{2, 2, 2, 2, 2, 2, 2, 4};
  const auto with = [](const std::vector<float>& within, const std::vector<float>& beyond) {
    described d("phi3");
    d.number("rope.scaling.original_context_length", 256).real("rope.scaling.attn_factor", 1.25f);
    d.floats("rope_factors_short.weight", within).floats("rope_factors_long.weight", beyond);
    return d;
  };
  for (const bool named : {false, true}) {
    auto d = with(few, many);
    if (named) d.text("rope.scaling.type", "longrope");
    const auto c = d.config();
    CHECK(c.ropes[0].type == rope_type::longrope);
    CHECK((c.ropes[0].short_divisors == few && c.ropes[0].long_divisors == many));
    CHECK((c.ropes[0].original_context == 256 && c.shape.tables[0].factor == 1.25f));
  }
  CHECK_THAT(with({1, 2}, many).refusal(),
             Contains("tensor 'rope_factors_short.weight' is F32 [2], not F32 [8]"));
  CHECK_THAT(with(few, {1, 1, 1, 1, 1, 1, 1, 0}).refusal(), Contains("'rope_factors_long.weight' has 0"));
  CHECK_THAT(described("phi3").text("rope.scaling.type", "longrope").refusal(),
             Contains("tensor 'rope_factors_short.weight' is missing"));
  CHECK_THAT(described("phi3").real("rope.scaling.attn_factor", 1.25f).refusal(),
             Contains("'phi3.rope.scaling.attn_factor'"));
}

TEST_CASE("phi3 slides everywhere or, with a window of 0, nowhere, and its up has the gate") {
  CHECK(layers_of(described("phi3").number("attention.sliding_window", 0).config()) == "------");
  CHECK(layers_of(described("phi3").number("attention.sliding_window", 32).config()) == "wwwwww");
  CHECK_THAT(described("mistral3").number("attention.sliding_window", 32).refusal(),
             Contains("'mistral3.attention.sliding_window' above 0"));
}

TEST_CASE("muse-glimmer: the file's norms have the scale of scores, and a pattern by its key") {
  described d("muse-glimmer");
  CHECK_THAT(d.refusal(), Contains("'muse-glimmer.attention.sliding_window' is missing"));
  d.number("attention.sliding_window", 32);
  CHECK_THAT(d.refusal(), Contains("'muse-glimmer.logit_scale' is missing"));
  d.real("logit_scale", 0.5f).real("final_logit_softcapping", 8);
  const auto c = d.config();
  CHECK(layers_of(c) == "www=ww");
  CHECK((c.shape.logit_factor == 0.5f && c.shape.logit_cap == 8 && c.shape.behind_eps == 1e-8f));
  CHECK(scale_of(c) == 1 / std::sqrt(16.0f));
  CHECK((!c.stored.weightless_heads && !c.stored.plus_one && c.stored.side_by_side));
}

TEST_CASE("norms with a mean need their own epsilon, and a model that looks ahead is refused") {
  for (const auto& [name, key] : {std::pair{"nemotron", "attention.layer_norm_epsilon"},
                                  std::pair{"ernie4_5", "attention.layer_norm_rms_epsilon"}}) {
    described d(name);
    std::erase_if(d.w.keys, [&](const auto& k) { return k.find(key) != k.npos; });
    CHECK_THAT(d.refusal(), Contains(fmt::format("'{}.{}' is missing", name, key)));
  }
  CHECK_THAT(described("gemma3").flag("attention.causal", false).refusal(),
             Contains("'gemma3.attention.causal' false is not supported"));
  CHECK(described("gemma3").flag("attention.causal", true).refusal() == "accepted");
}

TEST_CASE("biases are those that the first layer has") {
  const auto plain = described("ernie4_5").config().stored;
  CHECK((!plain.qkv_bias && !plain.out_bias && !plain.mlp_bias));
  const auto all = described("ernie4_5")
                       .floats("blk.0.attn_q.bias", {1})
                       .floats("blk.0.attn_output.bias", {1})
                       .floats("blk.0.ffn_down.bias", {1})
                       .config()
                       .stored;
  CHECK((all.qkv_bias && all.out_bias && all.mlp_bias));
  CHECK(described("qwen2").config().stored.qkv_bias);
}

}  // namespace weir::tests::gguf_config_test
