#include "core/text/tokenizer/gguf_rules.h"

#include <algorithm>
#include <array>

namespace weir::core {
namespace {

using expressions = std::array<std::string_view, 1>;

constexpr expressions llama3{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr expressions qwen2{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr expressions gpt2{R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};
constexpr expressions tekken{
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr expressions gpt4o{R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                            R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
                            R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                            R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
                            R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
// Seed-Coder and Seed-OSS: numerals are single, and signs do not take the ends of lines with them.
constexpr expressions seed{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)"};

struct named_rule {
  std::string_view name;
  gguf_rule rule;
};
constexpr gguf_rule like_llama3{llama3, false, true, true, false};
constexpr gguf_rule like_llama3_merged{llama3, false, false, false, false};
constexpr gguf_rule like_qwen2{qwen2, false, false, false, false};
constexpr gguf_rule like_gpt2{gpt2, false, false, false, false};
constexpr gguf_rule digits_then_gpt2{gpt2, true, false, false, false};
constexpr gguf_rule like_gpt4o{gpt4o, false, false, false, false};

constexpr std::array rules{
    named_rule{"llama-bpe", like_llama3},
    named_rule{"llama3", like_llama3},
    named_rule{"llama-v3", like_llama3},
    named_rule{"falcon3", like_llama3},
    named_rule{"pixtral", like_llama3},
    named_rule{"lfm2", like_llama3},
    named_rule{"dbrx", like_llama3_merged},
    named_rule{"smaug-bpe", like_llama3_merged},
    named_rule{"chatglm-bpe", like_llama3_merged},
    named_rule{"glm4", like_llama3_merged},
    // GGUF has no key for `composes`, but every tokenizer.json of these models composes.
    named_rule{"qwen2", {qwen2, false, false, false, true}},
    named_rule{"deepseek-r1-qwen", like_qwen2},
    named_rule{"hunyuan", like_qwen2},
    named_rule{"megrez", like_qwen2},
    named_rule{"stablelm2", like_qwen2},
    named_rule{"solar-open", like_qwen2},
    named_rule{"grok-2", like_qwen2},
    named_rule{"gpt-2", like_gpt2},
    named_rule{"phi-2", like_gpt2},
    named_rule{"mpt", like_gpt2},
    named_rule{"olmo", like_gpt2},
    named_rule{"jais", like_gpt2},
    named_rule{"exaone4", like_gpt2},
    named_rule{"mellum", like_gpt2},
    named_rule{"modern-bert", like_gpt2},
    named_rule{"gigachat", like_gpt2},
    named_rule{"trillion", like_gpt2},
    named_rule{"starcoder", digits_then_gpt2},
    named_rule{"refact", digits_then_gpt2},
    named_rule{"command-r", digits_then_gpt2},
    named_rule{"smollm", digits_then_gpt2},
    named_rule{"codeshell", digits_then_gpt2},
    named_rule{"exaone", digits_then_gpt2},
    named_rule{"tekken", {tekken, false, true, true, false}},
    named_rule{"gpt-4o", like_gpt4o},
    named_rule{"llama4", like_gpt4o},
    named_rule{"minimax-m2", like_gpt4o},
    named_rule{"kanana2", like_gpt4o},
    named_rule{"seed-coder", {seed, false, false, false, false}},
};

}  // namespace

const gguf_rule* find_gguf_rule(std::string_view name) noexcept {
  const auto* found = std::ranges::find(rules, name, &named_rule::name);
  return found == rules.end() ? nullptr : &found->rule;
}

}  // namespace weir::core
