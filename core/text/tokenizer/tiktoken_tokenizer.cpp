#include "core/text/tokenizer/tiktoken_tokenizer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/text/base64.h"
#include "core/text/tokenizer/gguf_rules.h"
#include "core/text/tokenizer/ranked_tokens.h"

namespace weir::core {
namespace {

struct ranked {
  std::string_view base64;
  std::size_t rank = 0;
};

// nullopt for a line that is not a token and its rank.
std::optional<ranked> parse_line(std::string_view line) noexcept {
  const std::size_t space = line.find(' ');
  if (space == 0 || space == line.npos) return std::nullopt;
  const std::string_view digits = line.substr(space + 1);
  ranked out{line.substr(0, space), 0};
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), out.rank);
  if (failed != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return out;
}

std::string_view take_line(std::string_view& rest) noexcept {
  std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

ranked_tokens parse_ranks(std::string_view file, const std::string& path) {
  ranked_tokens out;
  for (std::size_t number = 1; !file.empty(); ++number) {
    const std::string_view line = take_line(file);
    if (line.empty()) continue;
    const std::string place = fmt::format("{}:{}", path, number);
    const auto parsed = parse_line(line);
    if (!parsed) bad_field(place, "is not a token in base64, a space and a rank");
    out.add(parsed->base64, parsed->rank, place);
  }
  return out;
}

added_token special(std::string content, std::size_t id) {
  return {.content = std::move(content), .id = static_cast<token_id>(id), .special = true};
}

// Ids behind the ranks are reserved, 256 of them. Those that tokenizer_config.json lists have its names.
std::vector<added_token> reserved_tokens(std::size_t ranks, const tokenizer_settings& settings) {
  constexpr std::size_t reserved = 256, beyond = 2;
  std::vector<added_token> out;
  for (std::size_t id = ranks; id < ranks + reserved; ++id)
    out.push_back(special(fmt::format("<|reserved_token_{}|>", id), id));
  for (const added_token& t : settings.added) {
    const auto id = static_cast<std::size_t>(t.id);
    if (id < ranks || id >= ranks + reserved + beyond)
      bad_field(fmt::format("tokenizer_config.json.added_tokens_decoder.{}", t.id),
                fmt::format("is not one of the {} ids behind the {} ranks", reserved + beyond, ranks));
    id < ranks + reserved ? out[id - ranks] = t : out.emplace_back(t);
  }
  for (added_token& t : out) t.normalized = t.lstrip = t.rstrip = t.single_word = false;
  return out;
}

std::vector<added_token> first_qwen_tokens(std::size_t ranks, const tokenizer_settings&) {
  constexpr std::size_t extras = 205;
  std::vector<added_token> out;
  for (const char* name : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"})
    out.push_back(special(name, ranks + out.size()));
  for (std::size_t i = 0; i < extras; ++i)
    out.push_back(special(fmt::format("<|extra_{}|>", i), ranks + out.size()));
  return out;
}

// The published expression takes Han out of its sets of letters by an intersection.
std::string kimi_expression() {
  const std::string upper = R"((?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]))";
  const std::string lower = R"((?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}]))";
  const std::string before = R"([^\r\n\p{L}\p{N}]?)", after = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)";
  return R"([\p{sc:Han}]+|)" + before + upper + "*" + lower + "+" + after + before + upper + "+" + lower +
         "*" + after + R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

struct known_class {
  std::string_view name;
  std::string expression;
  bool composes;  // the text is normalised to NFC first
  std::vector<added_token> (*specials)(std::size_t ranks, const tokenizer_settings&);
};

const known_class& class_of(const tokenizer_settings& settings, const std::string& path) {
  static const std::array classes{
      known_class{"TikTokenTokenizer", kimi_expression(), false, reserved_tokens},
      known_class{"QWenTokenizer", std::string(find_gguf_rule("qwen2")->expressions[0]), true,
                  first_qwen_tokens},
  };
  const auto* found = std::ranges::find(classes, settings.class_name, &known_class::name);
  if (found == classes.end())
    unsupported("tokenizer_config.json.tokenizer_class",
                fmt::format("'{}' with {}", settings.class_name, path));
  return *found;
}

}  // namespace

bool looks_like_tiktoken(std::string_view file) noexcept {
  const auto first = parse_line(take_line(file));
  return first && from_base64(first->base64);
}

std::shared_ptr<const tokenizer> tiktoken_tokenizer(std::string_view file, const std::string& path,
                                                    const tokenizer_settings& settings) {
  const known_class& known = class_of(settings, path);
  const ranked_tokens tokens = parse_ranks(file, path);
  tokenizer_parts parts = tokens.parts({known.expression, known.composes, 0}, path);
  parts.added = added_tokens(known.specials(tokens.size(), settings), parts.normal, path);
  tokenizer_config config = settings.config();
  config.clean_up_spaces = false;  // these classes never do
  return std::make_shared<const hf_tokenizer>(std::move(parts), config, path);
}

}  // namespace weir::core
