// load_tokenizer() and parse_tokenizer(), which make an error of each refusal of the loaders.
#include <algorithm>
#include <array>
#include <filesystem>

#include "core/model/load/gguf_header.h"
#include "core/model/load/model_path.h"
#include "core/text/read_file.h"
#include "core/text/tokenizer/gguf_tokenizer.h"
#include "core/text/tokenizer/hf_tokenizer.h"
#include "core/text/tokenizer/sentencepiece_tokenizer.h"
#include "core/text/tokenizer/tekken_tokenizer.h"
#include "core/text/tokenizer/tiktoken_tokenizer.h"
#include "core/text/tokenizer/tokenizer_settings.h"

namespace weir::core {
namespace {

// Makes an error of a refusal.
result<std::shared_ptr<const tokenizer>> build(const auto& make) {
  try {
    return make();
  } catch (const refusal& r) {
    return r.why;
  }
}

std::shared_ptr<const tokenizer> tokenizer_from_json(std::string_view text, const settings_files& beside) {
  const tokenizer_config config = parse_config_alone(beside);
  boost::json::monotonic_resource memory;
  const auto document = parse_json(text, "tokenizer.json", &memory);
  const json_field file(document, "tokenizer.json");
  return std::make_shared<const hf_tokenizer>(parts_of(file), config, file.path());
}

// A GGUF file has no setting for cleaning up decoded text, so the text is not cleaned up.
result<std::shared_ptr<const tokenizer>> build_from_gguf(const std::string& path) {
  const auto header = open_gguf_header(path);
  if (!header) return header.error();
  gguf_reader keys(header->content.keys, path);
  auto parts = gguf_tokenizer(keys);
  tokenizer_config config{.bos = {}, .clean_up_spaces = false};
  const auto specials = gguf_special_tokens(keys);
  if (const auto* bos = specials.if_contains("bos_token")) config.bos = std::string(bos->get_string());
  if (keys.failure()) return *keys.failure();
  return build(
      [&] { return std::make_shared<const hf_tokenizer>(std::move(*parts), config, path + ": tokenizer"); });
}

// Files of vocabularies that are not read, which a directory without tokenizer.json may have.
constexpr std::array<std::string_view, 5> other_vocabularies = {
    "tokenizer.model.v3", "spiece.model", "sentencepiece.bpe.model", "vocab.json", "vocab.txt"};

// A directory's files of text. Members throw refusal.
class directory {
 public:
  explicit directory(std::string dir) : dir_(std::move(dir)) {}

  std::optional<std::string> contents(std::string_view name) const {
    auto file = read_file(path(name));
    if (!file) throw refusal{file.error()};
    return std::move(*file);
  }

  std::shared_ptr<const tokenizer> tokenizer_of() const {
    const std::string config = contents("tokenizer_config.json").value_or("");
    const std::string specials = contents("special_tokens_map.json").value_or("");
    if (const auto text = contents("tokenizer.json"))
      return tokenizer_from_json(*text, {config, specials, {}});
    if (const auto text = contents("tekken.json")) return tekken_tokenizer(*text);
    const std::string added = contents("added_tokens.json").value_or("");
    const settings_files beside{config, specials, added};
    if (const auto file = contents("tokenizer.model")) {
      const auto settings = parse_settings(beside);
      return looks_like_tiktoken(*file) ? tiktoken_tokenizer(*file, "tokenizer.model", settings)
                                        : sentencepiece_tokenizer(*file, settings);
    }
    for (const std::string& name : ranks())
      if (const auto file = contents(name)) return tiktoken_tokenizer(*file, name, parse_settings(beside));
    for (const std::string_view name : other_vocabularies)
      if (contents(name)) unsupported("tokenizer.json", fmt::format("no such file; {}", name));
    bad_field("tokenizer.json", "no such file");
  }

 private:
  std::string path(std::string_view name) const { return fmt::format("{}/{}", dir_, name); }

  // Names of tiktoken's files.
  std::vector<std::string> ranks() const {
    std::vector<std::string> out;
    std::error_code ec;
    for (const auto& entry : std::filesystem::directory_iterator(dir_, ec))
      if (entry.path().extension() == ".tiktoken") out.push_back(entry.path().filename().string());
    std::ranges::sort(out);
    out.insert(out.begin(), "tiktoken.model");
    return out;
  }

  const std::string dir_;
};

}  // namespace

result<std::shared_ptr<const tokenizer>> parse_tokenizer(std::string_view tokenizer_json,
                                                         std::string_view config_json) {
  return build([&] { return tokenizer_from_json(tokenizer_json, {config_json, {}, {}}); });
}

result<std::shared_ptr<const tokenizer>> load_tokenizer(const std::string& dir) {
  if (const auto fine = check_model_path(dir); !fine) return fine.error();
  if (is_gguf_path(dir)) return build_from_gguf(dir);
  auto built = build([&] { return directory(dir).tokenizer_of(); });
  if (!built && !built.error().message.starts_with(dir))
    return make_error(built.error().code, "{}/{}", dir, built.error().message);
  return built;
}

}  // namespace weir::core
