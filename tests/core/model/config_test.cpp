#include "core/model/config.h"

#include <catch2/catch.hpp>

#include "core/model/load.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::config_test {

using namespace weir::core;
using Catch::Matchers::Contains;
namespace json = boost::json;

namespace {

result<model_config> parse(const std::string& architecture, json::object more) {
  tests::toy_options o;
  o.architecture = architecture;
  o.config = std::move(more);
  return parse_config(json::serialize(tests::toy_config(o)), "config.json");
}

result<model_config> llama(json::object more) { return parse("LlamaForCausalLM", std::move(more)); }

std::string refusal(const result<model_config>& r) { return r ? "accepted" : r.error().message; }

const kernels::attention_mixer& mixer(const result<model_config>& c) {
  return c.value().shape.layers.front().mixer;
}

std::vector<std::uint32_t> windows_of(const result<model_config>& c) {
  std::vector<std::uint32_t> out;
  for (const kernels::layer_shape& l : c.value().shape.layers) out.push_back(l.mixer.rule.window);
  return out;
}

json::object without(json::object o, const char* key) {
  o.erase(key);
  return o;
}

}  // namespace

TEST_CASE("a Llama config is read as it stands") {
  const auto c = llama({});
  REQUIRE(c.has_value());
  CHECK(c->architecture == "LlamaForCausalLM");
  CHECK(c->shape.vocab == 258);
  CHECK(c->context == 512);
  CHECK(mixer(c).head_dim == 8);
  CHECK(mixer(c).width() == 64);
  CHECK(c->stop_ids == std::vector<token_id>{257});
  CHECK(c->bos == 256);
  CHECK(windows_of(c) == std::vector<std::uint32_t>{0, 0});
  CHECK(!c->stored.qkv_bias);
}

TEST_CASE("what a config leaves out takes the family's default") {
  auto o = tests::toy_config({});
  for (const char* key :
       {"head_dim", "num_key_value_heads", "rope_theta", "rms_norm_eps", "tie_word_embeddings"})
    o = without(std::move(o), key);
  const auto c = parse_config(json::serialize(o), "config.json");
  REQUIRE(c.has_value());
  CHECK(mixer(c).head_dim == 8);  // 32 / 4
  CHECK(mixer(c).kv_heads == 4);
  CHECK(c->ropes.front().theta == 10000);
  CHECK(c->shape.norm_eps == 1e-6f);
  CHECK(!c->stored.tied);
  o["architectures"] = {"Qwen3ForCausalLM"};
  CHECK(mixer(parse_config(json::serialize(o), "config.json")).head_dim == 128);
}

TEST_CASE("each family has the biases and norms that it is known for") {
  const auto norms = [](const result<model_config>& c) { return mixer(c).norms; };
  const auto qwen2 = parse("Qwen2ForCausalLM", {}),
             qwen3 = parse("Qwen3ForCausalLM", {{"attention_bias", true}});
  CHECK((qwen2->stored.qkv_bias && !qwen2->stored.out_bias && !qwen2->stored.mlp_bias));
  CHECK(norms(qwen2) == kernels::head_norms::none);
  CHECK((qwen3->stored.qkv_bias && qwen3->stored.out_bias));
  CHECK(norms(qwen3) == kernels::head_norms::each);
  const auto biased = llama({{"attention_bias", true}, {"mlp_bias", true}})->stored;
  CHECK((biased.qkv_bias && biased.out_bias && biased.mlp_bias));
  CHECK_THAT(refusal(parse("MistralForCausalLM", {{"attention_bias", true}})), Contains("not supported yet"));
  CHECK_THAT(refusal(parse("Qwen2ForCausalLM", {{"mlp_bias", true}})), Contains("not supported yet"));
}

TEST_CASE("sliding windows follow each family's keys") {
  using windows = std::vector<std::uint32_t>;
  CHECK(windows_of(parse("MistralForCausalLM", {{"sliding_window", 32}})) == windows{32, 32});
  CHECK(windows_of(parse("MistralForCausalLM", {{"sliding_window", nullptr}})) == windows{0, 0});
  CHECK(windows_of(parse("MistralForCausalLM", {})) == windows{4096, 4096});
  CHECK(windows_of(parse("Qwen2ForCausalLM", {{"sliding_window", 32}})) == windows{0, 0});
  CHECK(windows_of(parse("Qwen2ForCausalLM",
                         {{"sliding_window", 32}, {"use_sliding_window", true}, {"max_window_layers", 1}})) ==
        windows{0, 32});
  CHECK(windows_of(parse("Qwen2ForCausalLM", {{"sliding_window", 32},
                                              {"use_sliding_window", true},
                                              {"layer_types", {"sliding_attention", "full_attention"}}})) ==
        windows{32, 0});
  CHECK_THAT(refusal(llama({{"sliding_window", 32}})), Contains("sliding_window"));
  CHECK_THAT(refusal(llama({{"layer_types", {"full_attention", "chunked_attention"}}})),
             Contains("chunked_attention"));
  CHECK_THAT(refusal(llama({{"layer_types", {"full_attention"}}})), Contains("layer_types"));
  CHECK_THAT(refusal(llama({{"layer_types", {"full_attention", "sliding_attention"}}})),
             Contains("no sliding_window"));
}

TEST_CASE("rope is read from the old keys and from the new one, and the new one wins") {
  const json::object llama3{{"rope_type", "llama3"},
                            {"factor", 8.0},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_position_embeddings", 128}};
  const auto old_form = llama({{"rope_scaling", llama3}, {"rope_theta", 5e5}});
  REQUIRE(old_form.has_value());
  CHECK(old_form->ropes.front().type == rope_type::llama3);
  CHECK(old_form->ropes.front().theta == 5e5);
  auto with_theta = llama3;
  with_theta["rope_theta"] = 7e5;
  const auto new_form = llama({{"rope_parameters", with_theta}, {"rope_scaling", {{"type", "yarn"}}}});
  REQUIRE(new_form.has_value());
  CHECK(new_form->ropes.front().theta == 7e5);
  CHECK(new_form->ropes.front().original_context == 128);
  const auto linear = llama({{"rope_scaling", {{"type", "linear"}, {"factor", 4}}}});
  REQUIRE(linear.has_value());
  CHECK(linear->ropes.front().type == rope_type::linear);
  CHECK(linear->ropes.front().factor == 4);
  CHECK(llama({{"rope_scaling", nullptr}})->ropes.front().type == rope_type::plain);
}

TEST_CASE("a rope that is not supported, or not whole, is refused by name") {
  CHECK_THAT(refusal(llama({{"rope_scaling", {{"rope_type", "xpos"}, {"factor", 2.0}}}})),
             Contains("rope type 'xpos' is not supported yet"));
  CHECK_THAT(refusal(llama({{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 2.0}}}})),
             Contains("original_max_position_embeddings"));
  CHECK_THAT(refusal(llama({{"rope_scaling", {{"rope_type", "longrope"}, {"factor", 2.0}}}})),
             Contains("'original_max_position_embeddings' is missing"));
  CHECK_THAT(refusal(llama({{"rope_scaling", {{"rope_type", "linear"}}}})), Contains("'factor' is missing"));
  CHECK_THAT(refusal(llama({{"rope_scaling", {{"rope_type", "linear"}, {"factor", 0.5}}}})),
             Contains("'factor'"));
  CHECK_THAT(refusal(llama({{"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8}}}})),
             Contains("low_freq_factor"));
  CHECK_THAT(refusal(llama({{"rope_scaling", "linear"}})), Contains("'rope_scaling' must be an object"));
  CHECK_THAT(refusal(llama({{"rope_theta", 0}})), Contains("'rope_theta'"));
  CHECK_THAT(refusal(llama({{"partial_rotary_factor", 0.5}})), Contains("partial_rotary_factor"));
}

TEST_CASE("llama3's scaling keeps fast frequencies, slows slow ones, and mixes between") {
  rope_config rope{.type = rope_type::llama3, .theta = 500000, .factor = 8, .original_context = 8192};
  const auto frequencies = [](const rope_config& r, std::uint32_t head_dim) {
    return make_rotary_table(r, head_dim, 64).frequencies;
  };
  const auto plain = frequencies({.theta = 500000}, 128), scaled = frequencies(rope, 128);
  CHECK(scaled[0] == plain[0]);
  CHECK(scaled[63] == Approx(plain[63] / 8));
  int between = 0;
  for (std::size_t i = 0; i < 64; ++i)
    between += scaled[i] < plain[i] * 0.99 && scaled[i] > plain[i] / 8 * 1.01;
  CHECK(between > 3);
  CHECK(frequencies({.type = rope_type::linear, .factor = 4}, 16)[3] == Approx(frequencies({}, 16)[3] / 4));
}

TEST_CASE("what would change the arithmetic and is not supported is refused by name") {
  CHECK_THAT(refusal(parse("GPTNeoXForCausalLM", {})),
             Contains("architecture GPTNeoXForCausalLM is not supported; these are: LlamaForCausalLM, "
                      "MistralForCausalLM, "));
  CHECK_THAT(refusal(llama({{"hidden_act", "gelu"}})), Contains("hidden_act 'gelu'"));
  CHECK(llama({{"quantization_config", nullptr}}).has_value());
  CHECK(llama({{"hidden_act", "swish"}}).has_value());
}

namespace {

json::object compressed(const char* format, json::object weights) {
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", std::move(weights)}}}}}};
}

result<model_config> quantised(json::object q) { return llama({{"quantization_config", std::move(q)}}); }

}  // namespace

TEST_CASE("how a directory's linears are quantised is read from quantization_config") {
  CHECK(llama({}).value().quantised.form == quant_form::plain);
  const auto gptq = quantised({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 128}}).value().quantised;
  CHECK(gptq.form == quant_form::gptq);
  CHECK((gptq.bits == 4 && gptq.group == 128 && gptq.less_one && !gptq.indexed));
  CHECK(quantised({{"quant_method", "gptq"}, {"bits", 4}, {"desc_act", true}}).value().quantised.indexed);
  const auto whole = quantised({{"quant_method", "gptq"},
                                {"bits", 8},
                                {"group_size", -1},
                                {"checkpoint_format", "gptq_v2"},
                                {"dynamic", {{"-:.*down.*", json::object()}}}})
                         .value()
                         .quantised;
  CHECK((whole.bits == 8 && whole.group == 0 && !whole.less_one));
  const auto fp8 = quantised({{"quant_method", "fp8"}, {"weight_block_size", {128, 256}}}).value().quantised;
  CHECK(fp8.form == quant_form::fp8);
  CHECK((fp8.block_rows == 128 && fp8.block_columns == 256));
  const auto packed =
      quantised(compressed("pack-quantized",
                           {{"num_bits", 3}, {"type", "int"}, {"strategy", "group"}, {"group_size", 64}}))
          .value()
          .quantised;
  CHECK(packed.form == quant_form::packed);
  CHECK((packed.bits == 3 && packed.group == 64 && !packed.indexed));
  for (const char* order : {"group", "dynamic", "weight", "static"}) {
    const json::object scheme{
        {"num_bits", 4}, {"strategy", "group"}, {"group_size", 64}, {"actorder", order}};
    const bool by_group = std::string_view(order) == "group" || std::string_view(order) == "dynamic";
    CHECK(quantised(compressed("pack-quantized", scheme)).value().quantised.indexed == by_group);
  }
  CHECK(quantised({{"quant_method", "exl2"}, {"bits", 4.0}, {"head_bits", 6}}).value().quantised.form ==
        quant_form::exl2);
}

TEST_CASE("a quantisation that is not supported is refused by name, and a wrong value by its key") {
  const auto refused = [](json::object q, const char* why) {
    const auto c = quantised(std::move(q));
    REQUIRE(!c.has_value());
    CHECK(c.error().code == errc::not_supported);
    CHECK_THAT(c.error().message, Contains("quantization_config") && Contains(why));
  };
  const auto gptq = [](json::object more) {
    json::object q{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 128}};
    for (const auto& [key, value] : more) q[key] = value;
    return q;
  };
  refused({{"bits", 4}}, "no quant_method");
  for (const char* method : {"exl3", "bitsandbytes", "hqq", "aqlm", "torchao", "quark"})
    refused({{"quant_method", method}}, method);
  refused(gptq({{"checkpoint_format", "marlin"}}), "checkpoint_format 'marlin'");
  refused(gptq({{"bits", 5}}), "bits 5");
  refused(gptq({{"group_size", 48}}), "group_size 48");
  refused(gptq({{"pack_dtype", "int16"}}), "pack_dtype 'int16'");
  refused(gptq({{"dynamic", {{"+:.*", {{"bits", 8}}}}}}), "+:.*");
  refused({{"quant_method", "awq"}, {"bits", 4}, {"version", "gemv"}}, "version 'gemv'");
  refused({{"quant_method", "awq"}, {"bits", 4}, {"zero_point", false}}, "zero_point");
  refused({{"quant_method", "fp8"}, {"fmt", "e5m2"}}, "fmt 'e5m2'");
  refused({{"quant_method", "fp8"}, {"weight_block_size", {128, 64}}}, "weight_block_size [128,64]");
  refused({{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}}, "NVFP4");
  refused(compressed("marlin-24", {}), "marlin-24");
  refused(compressed("nvfp4-pack-quantized", {}), "nvfp4-pack-quantized");
  refused(compressed("pack-quantized", {{"num_bits", 4}, {"strategy", "tensor_group"}}), "tensor_group");
  refused(compressed("pack-quantized", {{"num_bits", 4}, {"actorder", "random"}}), "actorder \"random\"");
  refused(compressed("int-quantized", {{"num_bits", 8}, {"actorder", "group"}}), "actorder \"group\"");
  refused(compressed("float-quantized", {{"num_bits", 8}, {"type", "int"}}), "type 'int'");
  auto two = compressed("pack-quantized", {});
  two["config_groups"].as_object()["group_1"] = json::object();
  refused(two, "2 groups in config_groups");
  CHECK_THAT(refusal(quantised(gptq({{"bits", "four"}}))), Contains("'bits' must be a whole number"));
  CHECK_THAT(refusal(quantised({{"quant_method", "gptq"}})), Contains("'bits' is missing"));
  CHECK_THAT(refusal(quantised({{"quant_method", "fp8"}, {"weight_block_size", 128}})),
             Contains("'weight_block_size' must be two whole numbers"));
  CHECK_THAT(refusal(llama({{"quantization_config", 3}})),
             Contains("'quantization_config' must be an object"));
}

TEST_CASE("a size that is missing, of another kind or out of range is refused by name") {
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "max_position_embeddings"}) {
    CAPTURE(key);
    const auto gone = without(tests::toy_config({}), key);
    CHECK_THAT(refusal(parse_config(json::serialize(gone), "config.json")),
               Contains(key) && Contains("missing"));
    for (const json::value& wrong : {json::value(0), json::value(-1), json::value(1.5), json::value("8"),
                                     json::value(1ull << 40), json::value(1e300), json::value(json::array{})})
      CHECK_THAT(refusal(llama({{key, wrong}})), Contains(std::string("config.json: '") + key));
  }
  CHECK_THAT(refusal(llama({{"num_key_value_heads", 3}})), Contains("num_key_value_heads 3"));
  CHECK_THAT(refusal(llama({{"head_dim", 7}})), Contains("7"));
  CHECK_THAT(refusal(llama({{"rms_norm_eps", 0}})), Contains("rms_norm_eps"));
  CHECK_THAT(refusal(llama({{"rms_norm_eps", "1e-5"}})), Contains("rms_norm_eps"));
  CHECK_THAT(refusal(llama({{"attention_bias", 1}})), Contains("attention_bias"));
  CHECK_THAT(refusal(llama({{"eos_token_id", 258}})), Contains("eos_token_id"));
  CHECK_THAT(refusal(llama({{"eos_token_id", json::array{257, "x"}}})), Contains("eos_token_id"));
}

TEST_CASE("a config that is not one is refused") {
  for (const char* text : {"", "{", "[]", "null", "{}", R"({"architectures":[]})",
                           R"({"architectures":"Llama"})", R"({"architectures":["A","B"]})"})
    CHECK(!parse_config(text, "config.json"));
  CHECK_THAT(refusal(parse_config(R"({"vocab_size":1,"vocab_size":2})", "config.json")),
             Contains("there twice"));
}

TEST_CASE("a family's keys are refused in other families, and out of range in its own") {
  CHECK_THAT(refusal(llama({{"attention_multiplier", 0.5}})),
             Contains("attention_multiplier in LlamaForCausalLM is not supported yet"));
  CHECK_THAT(refusal(llama({{"final_logit_softcapping", 30}})), Contains("final_logit_softcapping"));
  CHECK_THAT(refusal(llama({{"num_local_experts", 8}})),
             Contains("num_local_experts, a mixture of experts,") && Contains("LlamaForCausalLM"));
  CHECK(llama({{"residual_multiplier", 1}, {"logit_scale", 1.0}}).has_value());
  CHECK_THAT(refusal(parse("GraniteForCausalLM", {{"logits_scaling", 0}})), Contains("'logits_scaling'"));
  CHECK_THAT(refusal(parse("Gemma2ForCausalLM", {{"attn_logit_softcapping", -1}})),
             Contains("'attn_logit_softcapping' must be above 0"));
  CHECK_THAT(refusal(parse("Gemma2ForCausalLM", {{"query_pre_attn_scalar", 0}})),
             Contains("query_pre_attn_scalar"));
  CHECK_THAT(refusal(parse("Glm4ForCausalLM", {{"partial_rotary_factor", 0.4}})),
             Contains("an even number of a head's 8 elements must turn"));
  CHECK_THAT(refusal(parse("SmolLM3ForCausalLM", {{"no_rope_layers", {1}}})), Contains("no_rope_layers"));
  CHECK_THAT(refusal(parse("Mistral3ForConditionalGeneration", {})), Contains("'text_config'"));
  CHECK_THAT(refusal(llama({{"text_config", json::object()}})), Contains("text_config in LlamaForCausalLM"));
}

TEST_CASE("a text model inside another has its own keys, the outer ones, and its family's defaults") {
  json::object inner = tests::toy_config({});
  inner.erase("architectures");
  for (const char* key : {"tie_word_embeddings", "eos_token_id", "max_position_embeddings", "head_dim"})
    inner.erase(key);
  const json::object outer{{"architectures", {"Mistral3ForConditionalGeneration"}},
                           {"text_config", inner},
                           {"eos_token_id", 200},
                           {"tie_word_embeddings", true},
                           {"vision_config", json::object()}};
  const auto c = parse_config(json::serialize(outer), "config.json");
  REQUIRE(c.has_value());
  CHECK(c->stop_ids == std::vector<token_id>{200});
  CHECK(c->stored.tied);
  CHECK(c->context == 262144);
  CHECK(mixer(c).head_dim == 128);
}

TEST_CASE("which layers slide and turn follows the family where the file does not say") {
  const auto turning = [](const result<model_config>& c) {
    std::vector<int> out;
    for (const kernels::layer_shape& l : c.value().shape.layers) out.push_back(l.mixer.rotary);
    return out;
  };
  const auto gemma = parse("Gemma3ForCausalLM", {{"num_hidden_layers", 7}, {"sliding_window", 8}});
  CHECK(windows_of(gemma) == std::vector<std::uint32_t>{8, 8, 8, 8, 8, 0, 8});
  CHECK(turning(gemma) == std::vector<int>{1, 1, 1, 1, 1, 0, 1});
  const auto smol = parse("SmolLM3ForCausalLM", {{"num_hidden_layers", 5}});
  CHECK(turning(smol) == std::vector<int>{0, 0, 0, -1, 0});
  const auto exaone =
      parse("Exaone4ForCausalLM", {{"num_hidden_layers", 4}, {"sliding_window_pattern", "LLLG"}});
  CHECK(windows_of(exaone) == std::vector<std::uint32_t>{4096, 4096, 4096, 0});
  CHECK(turning(exaone) == std::vector<int>{0, 0, 0, -1});
  const auto flat = parse("Exaone4ForCausalLM", {{"num_hidden_layers", 2}, {"sliding_window", nullptr}});
  CHECK(windows_of(flat) == std::vector<std::uint32_t>{0, 0});
  CHECK(turning(flat) == std::vector<int>{0, 0});
}

}  // namespace weir::tests::config_test
