// load_tokenizer() and parse_tokenizer(), which make an error of each refusal of the loaders.
#include "core/model/load/gguf_header.h"
#include "core/model/load/model_path.h"
#include "core/text/read_file.h"
#include "core/text/tokenizer/gguf_tokenizer.h"
#include "core/text/tokenizer/hf_tokenizer.h"

namespace weir::core {
namespace {

constexpr std::string_view config_name = "tokenizer_config.json", map_name = "special_tokens_map.json";

// `field`: like "<s>" or {"content": "<s>", …}.
std::string parse_token_name(const json_field& field) {
  return std::string(field.is_object() ? field.at("content").text() : field.text());
}

// `bos_token` in tokenizer_config.json has precedence over special_tokens_map.json, even if it is null.
tokenizer_config parse_config(std::string_view config_json, std::string_view map_json) {
  tokenizer_config config;
  bool named = false;
  if (!config_json.empty()) {
    const auto document = parse_json(config_json, std::string(config_name), {});
    const json_field file(document, std::string(config_name));
    config.clean_up_spaces = file.boolean_or("clean_up_tokenization_spaces", true);
    named = file.object().contains("bos_token");
    if (const auto bos = file.find("bos_token")) config.bos = parse_token_name(*bos);
  }
  if (!map_json.empty() && !named) {
    const auto document = parse_json(map_json, std::string(map_name), {});
    const json_field file(document, std::string(map_name));
    if (const auto bos = file.find("bos_token")) config.bos = parse_token_name(*bos);
  }
  return config;
}

result<std::shared_ptr<const tokenizer>> build(std::string_view tokenizer_json, std::string_view config_json,
                                               std::string_view map_json) {
  try {
    const tokenizer_config config = parse_config(config_json, map_json);
    boost::json::monotonic_resource memory;
    const auto document = parse_json(tokenizer_json, "tokenizer.json", &memory);
    return std::make_shared<const hf_tokenizer>(json_field(document, "tokenizer.json"), config);
  } catch (const refusal& r) {
    return r.why;
  }
}

// A GGUF file has no setting for cleaning up decoded text, so the text is not cleaned up.
result<std::shared_ptr<const tokenizer>> build_from_gguf(const std::string& path) {
  const auto header = open_gguf_header(path);
  if (!header) return header.error();
  gguf_reader keys(header->content.keys, path);
  const boost::json::value document = gguf_tokenizer(keys);
  tokenizer_config config{.bos = {}, .clean_up_spaces = false};
  const auto specials = gguf_special_tokens(keys);
  if (const auto* bos = specials.if_contains("bos_token")) config.bos = std::string(bos->get_string());
  if (keys.failure()) return *keys.failure();
  try {
    return std::make_shared<const hf_tokenizer>(json_field(document, path + ": tokenizer"), config);
  } catch (const refusal& r) {
    return r.why;
  }
}

}  // namespace

result<std::shared_ptr<const tokenizer>> parse_tokenizer(std::string_view tokenizer_json,
                                                         std::string_view config_json) {
  return build(tokenizer_json, config_json, {});
}

result<std::shared_ptr<const tokenizer>> load_tokenizer(const std::string& dir) {
  if (const auto fine = check_model_path(dir); !fine) return fine.error();
  if (is_gguf_path(dir)) return build_from_gguf(dir);
  std::string contents[3];
  const std::string_view names[] = {"tokenizer.json", config_name, map_name};
  for (int i = 0; i < 3; ++i) {
    const std::string path = fmt::format("{}/{}", dir, names[i]);
    auto file = read_file(path);
    if (!file) return file.error();
    if (i == 0 && !*file) return make_error(errc::bad_file, "{}: no such file", path);
    contents[i] = std::move(*file).value_or("");
  }
  auto built = build(contents[0], contents[1], contents[2]);
  if (!built) return make_error(built.error().code, "{}/{}", dir, built.error().message);
  return built;
}

}  // namespace weir::core
