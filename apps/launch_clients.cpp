#include "apps/launch_clients.h"

#include <fmt/format.h>
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <optional>

namespace weir::apps {
namespace {

// Without a header that changes with each request, prompts of Claude Code begin alike, and the prefix cache
// serves them.
const std::vector<launch_client>& table() {
  static const std::vector<launch_client> all = {
      {.name = "claude",
       .program = "claude",
       .install = "npm install -g @anthropic-ai/claude-code",
       .variables = {{"ANTHROPIC_BASE_URL", "<root>"},
                     {"ANTHROPIC_AUTH_TOKEN", "<key>"},
                     {"ANTHROPIC_API_KEY", ""},
                     {"ANTHROPIC_MODEL", "<model>"},
                     {"ANTHROPIC_SMALL_FAST_MODEL", "<model>"},
                     {"ANTHROPIC_DEFAULT_HAIKU_MODEL", "<model>"},
                     {"ANTHROPIC_DEFAULT_SONNET_MODEL", "<model>"},
                     {"ANTHROPIC_DEFAULT_OPUS_MODEL", "<model>"},
                     {"CLAUDE_CODE_SUBAGENT_MODEL", "<model>"},
                     {"CLAUDE_CODE_MAX_CONTEXT_TOKENS", "<context>"},
                     {"CLAUDE_CODE_AUTO_COMPACT_WINDOW", "<context>"},
                     {"CLAUDE_CODE_MAX_OUTPUT_TOKENS", "<output>"},
                     {"CLAUDE_CODE_ATTRIBUTION_HEADER", "0"},
                     {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"}},
       .removed = {"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"}},
      {.name = "codex",
       .program = "codex",
       .install = "npm install -g @openai/codex",
       .variables = {{"WEIR_API_KEY", "<key>"}},
       .arguments = {"-c", "model_provider=\"weir\"", "-c",
                     "model_providers.weir={name=\"weir\",base_url=<\"root/v1\">,wire_api=\"responses\","
                     "env_key=\"WEIR_API_KEY\"}",
                     "-c", "model=<\"model\">", "-c", "model_context_window=<context>"}},
      {.name = "opencode",
       .program = "opencode",
       .install = "npm install -g opencode-ai",
       .variables = {{"WEIR_API_KEY", "<key>"},
                     {"OPENCODE_CONFIG_CONTENT",
                      R"({"model":<"weir/model">,"small_model":<"weir/model">,"provider":{"weir":)"
                      R"({"npm":"@ai-sdk/openai-compatible","name":"weir","options":)"
                      R"({"baseURL":<"root/v1">,"apiKey":"{env:WEIR_API_KEY}"},"models":{<"model">:)"
                      R"({"name":<"model">,"limit":{"context":<context>,"output":<output>}}}}}})"}}},
      {.name = "aider",
       .program = "aider",
       .install = "python -m pip install aider-install && aider-install",
       .variables = {{"OPENAI_API_BASE", "<root>/v1"}, {"OPENAI_API_KEY", "<key>"}},
       .arguments = {"--no-show-model-warnings", "--model", "openai/<model>"}},
      {.name = "goose",
       .program = "goose",
       .install = "see https://block.github.io/goose",
       .variables = {{"GOOSE_PROVIDER", "openai"},
                     {"GOOSE_MODEL", "<model>"},
                     {"GOOSE_CONTEXT_LIMIT", "<context>"},
                     {"OPENAI_HOST", "<host>"},
                     {"OPENAI_BASE_PATH", "<path>v1/chat/completions"},
                     {"OPENAI_API_KEY", "<key>"}},
       .usual = {"session"}},
      {.name = "qwen",
       .program = "qwen",
       .install = "npm install -g @qwen-code/qwen-code",
       .variables = {{"OPENAI_BASE_URL", "<root>/v1"},
                     {"OPENAI_API_KEY", "<key>"},
                     {"OPENAI_MODEL", "<model>"}},
       .arguments = {"--auth-type", "openai"}},
      {.name = "env",
       .variables = {{"OPENAI_BASE_URL", "<root>/v1"},
                     {"OPENAI_API_BASE", "<root>/v1"},
                     {"OPENAI_API_KEY", "<key>"},
                     {"OPENAI_MODEL", "<model>"},
                     {"ANTHROPIC_BASE_URL", "<root>"},
                     {"ANTHROPIC_AUTH_TOKEN", "<key>"},
                     {"ANTHROPIC_MODEL", "<model>"}}},
  };
  return all;
}

// Where the path of an address begins; its size where it has none.
std::size_t path_of(std::string_view root) {
  const auto scheme = root.find("://");
  const auto slash = root.find('/', scheme == root.npos ? 0 : scheme + 3);
  return std::min(slash, root.size());
}

// The value of a place; nullopt: there is no such place.
std::optional<std::string> value_of(std::string_view place, const launch_facts& f) {
  constexpr std::uint64_t most_output = 32'000;
  if (place == "root") return f.root;
  if (place == "root/v1") return f.root + "/v1";
  if (place == "host") return f.root.substr(0, path_of(f.root));
  if (place == "path") {
    const auto at = path_of(f.root);
    return at == f.root.size() ? std::string() : f.root.substr(at + 1) + "/";
  }
  if (place == "key") return f.key;
  if (place == "model") return f.model;
  if (place == "weir/model") return "weir/" + f.model;
  if (place == "context") return std::to_string(f.context);
  if (place == "output") return std::to_string(std::clamp<std::uint64_t>(f.context / 4, 1, most_output));
  return std::nullopt;
}

}  // namespace

std::span<const launch_client> launch_clients() { return table(); }

std::string fill(std::string_view text, const launch_facts& facts) {
  std::string out;
  while (!text.empty()) {
    const auto begin = std::min(text.find('<'), text.size());
    out += text.substr(0, begin);
    text.remove_prefix(begin);
    const auto end = text.find('>');
    if (text.empty() || end == text.npos) break;
    std::string_view place = text.substr(1, end - 1);
    const bool quoted = place.size() > 2 && place.front() == '"' && place.back() == '"';
    if (quoted) place = place.substr(1, place.size() - 2);
    const auto value = value_of(place, facts);
    if (value) out += quoted ? boost::json::serialize(boost::json::value(*value)) : *value;
    text.remove_prefix(value ? end + 1 : 1);
    if (!value) out += '<';
  }
  return out.append(text);
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@,+";
  if (!text.empty() && text.find_first_not_of(plain) == text.npos) return std::string(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace weir::apps
