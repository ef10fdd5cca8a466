// Which families of models are served, and what is said of those that are not. docs/models.md names them all.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>

#include "core/inspect/model_report.h"
#include "core/inspect/report_text.h"
#include "core/model/families.h"
#include "tests/support/data.h"
#include "tests/support/source_dir.h"

namespace weir::tests::families_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

namespace json = boost::json;

// A config.json with the keys that its family's files have beside the usual sizes.
struct family_file {
  const char* architecture;
  const char* refusal;      // what the reason names; null: the description is accepted
  const char* more = "{}";  // keys of the text model
  bool wrapped = false;     // these and the sizes are in text_config
};

constexpr const char* experts = R"({"num_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":32})";
constexpr const char* local_experts = R"({"num_local_experts":8,"num_experts_per_tok":2})";
constexpr const char* latent = R"({"n_routed_experts":8,"num_experts_per_tok":2,"q_lora_rank":24,
                                   "kv_lora_rank":32,"qk_rope_head_dim":8})";
constexpr const char* delta = R"({"layer_types":["linear_attention","linear_attention","linear_attention",
                                  "full_attention"],"linear_num_value_heads":4})";

const std::array families{
    family_file{"LlamaForCausalLM", nullptr},
    family_file{"MistralForCausalLM", nullptr},
    family_file{"Qwen2ForCausalLM", nullptr},
    family_file{"Qwen3ForCausalLM", nullptr},
    family_file{"Phi3ForCausalLM", nullptr,
                R"({"partial_rotary_factor":0.75,"original_max_position_embeddings":128,"rope_scaling":
                    {"type":"longrope","short_factor":[1,1,1,1,1,1],"long_factor":[2,2,2,2,2,2]}})"},
    family_file{"Gemma2ForCausalLM", nullptr, R"({"query_pre_attn_scalar":16,"sliding_window":32})"},
    family_file{"Gemma3ForCausalLM", nullptr, R"({"query_pre_attn_scalar":16,"sliding_window":32})"},
    family_file{"Gemma3ForConditionalGeneration", nullptr, R"({"sliding_window":32})", true},
    family_file{"Olmo2ForCausalLM", nullptr},
    family_file{"Olmo3ForCausalLM", nullptr, R"({"sliding_window":32})"},
    family_file{"GraniteForCausalLM", nullptr, R"({"embedding_multiplier":12,"logits_scaling":8})"},
    family_file{"GraniteMoeHybridForCausalLM", nullptr,
                R"({"shared_intermediate_size":128,"layer_types":["attention","attention","attention",
                    "attention"],"position_embedding_type":"nope"})"},
    family_file{"SmolLM3ForCausalLM", nullptr, R"({"no_rope_layers":[1,1,1,0]})"},
    family_file{"CohereForCausalLM", nullptr, R"({"use_qk_norm":true})"},
    family_file{"Cohere2ForCausalLM", nullptr, R"({"sliding_window":32})"},
    family_file{"Glm4ForCausalLM", nullptr, R"({"attention_bias":true})"},
    family_file{"Ministral3ForCausalLM", nullptr},
    family_file{"Mistral3ForConditionalGeneration", nullptr, "{}", true},
    family_file{"SeedOssForCausalLM", nullptr},
    family_file{"Exaone4ForCausalLM", nullptr, R"({"sliding_window":32})"},
    family_file{"Ernie4_5ForCausalLM", nullptr, R"({"use_bias":false})"},
    family_file{"NemotronForCausalLM", nullptr},
    family_file{"MuseGlimmerForConditionalGeneration", nullptr, R"({"sliding_window":32})", true},
    family_file{"GraniteMoeHybridForCausalLM", nullptr,
                R"({"shared_intermediate_size":128,"num_local_experts":8,"num_experts_per_tok":2})"},
    family_file{"GraniteMoeForCausalLM", nullptr, local_experts},
    family_file{"GraniteMoeSharedForCausalLM", nullptr, local_experts},
    family_file{"MixtralForCausalLM", nullptr, local_experts},
    family_file{"Qwen2MoeForCausalLM", nullptr, experts},
    family_file{"Qwen3MoeForCausalLM", nullptr, experts},
    family_file{"GptOssForCausalLM", nullptr, local_experts},
    family_file{"Glm4MoeForCausalLM", nullptr,
                R"({"n_routed_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":32,
                    "num_nextn_predict_layers":1})"},
    family_file{"MiniMaxM2ForCausalLM", nullptr, local_experts},
    family_file{"Ernie4_5_MoeForCausalLM", nullptr,
                R"({"moe_num_experts":8,"moe_k":2,"moe_intermediate_size":32})"},
    // Members of served families that are not served.
    family_file{"Qwen3MoeForCausalLM", "num_experts", R"({"moe_intermediate_size":32})"},
    family_file{"Glm4MoeForCausalLM", "n_group",
                R"({"n_routed_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":32,"n_group":4})"},
    family_file{"GraniteMoeHybridForCausalLM", "layer type \"mamba\"",
                R"({"shared_intermediate_size":128,"layer_types":["mamba","mamba","mamba","attention"]})"},
    // Families that are not served.
    family_file{"Gemma4ForCausalLM", "Gemma4ForCausalLM", R"({"global_head_dim":32})"},
    family_file{"Gemma4ForConditionalGeneration", "Gemma4ForConditionalGeneration", "{}", true},
    family_file{"DeepseekV2ForCausalLM", "DeepseekV2ForCausalLM", latent},
    family_file{"DeepseekV3ForCausalLM", "DeepseekV3ForCausalLM", latent},
    family_file{"Glm4MoeLiteForCausalLM", "Glm4MoeLiteForCausalLM", latent},
    family_file{"Qwen3NextForCausalLM", "Qwen3NextForCausalLM", delta},
    family_file{"Qwen3_5ForCausalLM", "Qwen3_5ForCausalLM", delta},
    family_file{"Qwen3_5ForConditionalGeneration", "Qwen3_5ForConditionalGeneration", delta, true},
    family_file{"Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration", delta, true},
    family_file{"Llama4ForConditionalGeneration", "Llama4ForConditionalGeneration",
                R"({"attention_chunk_size":64})", true},
    family_file{"DeepseekV32ForCausalLM", "DeepseekV32ForCausalLM", latent},
    family_file{"GlmMoeDsaForCausalLM", "GlmMoeDsaForCausalLM", latent},
    family_file{"KimiLinearForCausalLM", "KimiLinearForCausalLM", delta},
    family_file{"NemotronHForCausalLM", "NemotronHForCausalLM", R"({"hybrid_override_pattern":"M-M*"})"},
    family_file{"Lfm2ForCausalLM", "Lfm2ForCausalLM", R"({"conv_L_cache":3})"},
    family_file{"FalconH1ForCausalLM", "FalconH1ForCausalLM", R"({"mamba_d_state":16})"},
};

std::string config_of(const family_file& f) {
  json::object text{{"hidden_size", 64},
                    {"intermediate_size", 128},
                    {"num_hidden_layers", 4},
                    {"num_attention_heads", 4},
                    {"num_key_value_heads", 2},
                    {"head_dim", 16},
                    {"max_position_embeddings", 512},
                    {"vocab_size", 258},
                    {"eos_token_id", 257},
                    {"bos_token_id", 256}};
  const json::value more = json::parse(f.more);
  for (const auto& [key, value] : more.get_object()) text[key] = value;
  json::object outer = f.wrapped ? json::object{{"text_config", text}} : text;
  outer["architectures"] = json::array{f.architecture};
  return json::serialize(outer);
}

model_report report_of(const family_file& f) {
  const tests::temporary_dir dir;
  tests::write_file(dir / "config.json", config_of(f));
  return describe_model(dir.path().string());
}

}  // namespace

TEST_CASE("inspect families: each is described, or refused by what it has that is not supported") {
  for (const family_file& f : families) {
    INFO(f.architecture << " " << f.more);
    const model_report m = report_of(f);
    REQUIRE(!m.refused.empty());  // there are no weights
    CHECK(!m.served());
    CHECK(m.architecture == f.architecture);
    CHECK(m.wrapped == f.wrapped);
    CHECK(m.config.has_value() == !f.refusal);
    if (f.refusal) {
      CHECK_THAT(m.refused.front(), Contains(f.refusal));
      CHECK(m.row.empty());
    } else {
      CHECK_THAT(m.refused.front(), Contains("safetensors"));
      CHECK(m.row == f.architecture);
      CHECK(m.keys.empty());
    }
    CHECK(m.sizes.layers == 4);
    CHECK(m.sizes.hidden == 64);
    CHECK(m.sizes.heads == 4);
    CHECK(m.sizes.kv_heads == 2);
    CHECK(m.sizes.head_dim == 16);
    CHECK(m.sizes.inter == (f.more == experts ? 32 : 128));  // of the first layer
    CHECK(m.sizes.vocab == 258);
    CHECK(m.sizes.context == 512);
    if (f.more == latent) CHECK(m.keys.at("kv_lora_rank") == 32);
    if (f.more == delta) {
      CHECK(m.keys.at("layer_types") == json::value({{"full_attention", 1}, {"linear_attention", 3}}));
      CHECK_THAT(report_lines(m), Catch::VectorContains(std::string(
                                      "it also says  layer_types 1 full_attention, 3 linear_attention")));
    }
    if (!f.refusal && std::string_view(f.more).find("experts") != std::string_view::npos) {
      CHECK(m.sizes.experts == 8);
      CHECK(m.sizes.used == 2);
      const auto lines = report_lines(m);
      CHECK(std::ranges::any_of(lines,
                                [](const auto& l) { return l.starts_with("experts       8 of inner"); }));
    }
  }
}

TEST_CASE("inspect families: the table of this test and the page of models have every family") {
  const std::string page = tests::read_file(tests::source_dir() / "docs" / "models.md");
  for (const family& f : all_families()) {
    const auto same = [&](const family_file& file) { return f.architecture == file.architecture; };
    INFO(f.architecture);
    CHECK(std::ranges::any_of(families, same));
  }
  for (const family_file& f : families) CHECK_THAT(page, Contains(fmt::format("`{}`", f.architecture)));
}

TEST_CASE("inspect families: tiny models of every family are described from their headers") {
  const auto dirs = tests::data_folders("models-families", "config.json");
  if (dirs.empty()) WARN("no models of families below " << tests::data_dir());
  for (const auto& dir : dirs) {
    INFO(dir);
    const model_report m = describe_model(dir.string());
    CHECK(m.served() == (find_family(m.architecture) != nullptr));
    if (!m.served()) CHECK_THAT(m.refused.front(), Contains(m.architecture));
    CHECK(m.sizes.layers > 0);
    CHECK(m.sizes.vocab > 0);
    CHECK(!m.tensors.empty());
    CHECK(m.tokens);
    CHECK(m.chat);
    CHECK(report_lines(m).size() > 10);
  }
}

TEST_CASE("inspect families: every model that is served is said to be, with its exact number of parameters") {
  auto dirs = tests::reference_models();
  for (const auto& dir : tests::bundled_families()) dirs.push_back(dir);
  for (const auto& dir : dirs) {
    INFO(dir);
    const model_report m = describe_model(dir.string());
    CHECK(m.refused == std::vector<std::string>());
    CHECK(m.served());
    std::uint64_t bytes = 0;
    for (const auto& g : m.tensors) bytes += g.bytes;
    CHECK(m.parameters * 2 <= bytes);
    CHECK(m.parameters * 4 >= bytes);
  }
  const model_report rill = describe_model(tests::bundled_models().front().string());
  CHECK(rill.parameters == 10'623'360);
}

}  // namespace weir::tests::families_test
