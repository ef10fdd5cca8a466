#include "core/text/answer/find_format.h"

#include <catch2/catch.hpp>
#include <map>

#include "core/text/template/template.h"
#include "tests/core/text/answer/answer_fixtures.h"
#include "tests/support/data.h"

namespace weir::tests::find_format_test {
namespace {

core::answer_format format_of(std::string_view source) {
  const auto program = core::jinja::program::compile(source);
  REQUIRE(program.has_value());
  return core::find_format(**program, source, {});
}

// A template in the manner of ChatML, whose calls are written by `call`.
std::string with_calls(const std::string& call) {
  return "{% for m in messages %}<|im_start|>{{ m.role }}\n"
         "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
         "{{ m.content }}{% for c in m.tool_calls or [] %}" +
         call +
         "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif "
         "%}";
}

}  // namespace

TEST_CASE("find format: by what a template writes of calls and reasoning") {
  const auto hermes = format_of(with_calls(
      "\n<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | "
      "tojson }}}\n</tool_call>"));
  CHECK(hermes.calls.name == "hermes");
  CHECK(hermes.reasoning.open == "<think>\n");
  CHECK(hermes.reasoning.close == "\n</think>\n\n");
  const auto mistral =
      format_of(with_calls("[TOOL_CALLS]{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}"));
  CHECK(mistral.calls.name == "mistral");
  const auto odd = format_of(with_calls("<<{{ c.function.name }}>>{{ c.function.arguments | tojson }}"));
  CHECK_FALSE(odd.has_calls());
  CHECK_FALSE(format_of("{% for m in messages %}{{ m.content }}{% endfor %}").has_reasoning());
}

TEST_CASE("find format: a prompt ends inside reasoning where the template opened it last") {
  core::answer_format f;
  f.reasoning = {"<think>\n", "\n</think>\n\n"};
  const auto ends = [&](std::string text, std::vector<core::jinja::span> content) {
    core::jinja::rendering made;
    made.text = std::move(text);
    made.content = std::move(content);
    return core::ends_in_reasoning(made, f);
  };
  CHECK(ends("user: x\nassistant: <think>\n", {{6, 7}}));
  CHECK_FALSE(ends("user: x\nassistant: <think>\n\n</think>\n\n", {{6, 7}}));
  CHECK_FALSE(ends("user: <think>", {{6, 13}}));  // the client's own words
  CHECK_FALSE(ends("user: x\nassistant: ", {{6, 7}}));
}

// The published templates of $TEST_DATA_DIR/templates.
TEST_CASE("find format: published templates") {
  const std::map<std::string, std::string> formats = {
      {"Apertus-8B-Instruct", "apertus"},
      {"Bielik-11B-v3.0-Instruct", "hermes"},
      {"Cohere2MoE", "cohere"},
      {"GLM-4.6", "glm"},
      {"Kimi-K2-Thinking", "kimi"},
      {"LFM2-8B-A1B", "lfm2"},
      {"LFM2.5-Instruct", "lfm2"},
      {"MiniMax-M1", "minimax-m1"},
      {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "qwen-coder"},
      {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "hermes"},
      {"Qwen-QwQ-32B", "hermes"},
      {"Qwen-Qwen3-0.6B", "hermes"},
      {"Qwen3.5-4B", "qwen-coder"},
      {"StepFun3.5-Flash", "qwen-coder"},
      {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek-v3"},
      {"deepseek-ai-DeepSeek-V3.2", "deepseek-v3.2"},
      {"deepseek-ai-DeepSeek-V4", "deepseek-v4"},
      {"google-gemma-4-31B-it-interleaved", "gemma"},
      {"ibm-granite-granite-3.3-2B-Instruct", "granite"},
      {"ibm-granite-granite-4.1", "hermes"},
      {"lc-mistral-large-instruct-2407", "mistral-v3"},
      {"lc-mistral-nemo-instruct-2407", "mistral-v3"},
      {"meetkai-functionary-medium-v3.1", "functionary"},
      {"meta-llama-Llama-3.1-8B-Instruct", "llama3"},
      {"meta-llama-Llama-3.3-70B-Instruct", "llama3"},
      {"mistralai-Mistral-Nemo-Instruct-2407", "mistral-v3"},
      {"muse-glimmer", "muse-glimmer"},
      {"openbmb-MiniCPM5-1B", "minicpm5"},
      {"poolside-Laguna-S-2.1", "glm"},
      {"poolside-Laguna-XS.2", "glm"},
      {"qwen3-hf", "hermes"},
      {"unsloth-Apriel-1.5", "apriel"},
      {"upstage-Solar-Open-100B", "solar"},
  };
  const auto dir = data_dir() / "templates";
  if (!std::filesystem::exists(dir)) {
    WARN("skipped: there is no " << dir);
    return;
  }
  for (const auto& [name, wanted] : formats) {
    INFO(name);
    const auto found = format_of(read_file(dir / (name + ".jinja")));
    CHECK(found.calls.name == wanted);
  }
  for (const char* name : {"lc-gemma-7b-it", "phi-3-mini", "lc-chatglm4", "GigaChat3-10B-A1.8B"}) {
    INFO(name);
    CHECK_FALSE(format_of(read_file(dir / (std::string(name) + ".jinja"))).has_calls());
  }
}

}  // namespace weir::tests::find_format_test
