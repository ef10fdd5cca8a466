#include "core/text/tokenizer/tokenizer_settings.h"

#include <algorithm>
#include <charconv>

namespace weir::core {
namespace {

constexpr const char* config_name = "tokenizer_config.json";
constexpr const char* special_name = "special_tokens_map.json";
constexpr const char* added_name = "added_tokens.json";

// `field`: like "<s>" or {"content": "<s>", …}.
std::string parse_token_name(const json_field& field) {
  return std::string(field.is_object() ? field.at("content").text() : field.text());
}

class reader {
 public:
  tokenizer_settings read(const settings_files& files) {
    if (!files.config.empty()) {
      const auto document = parse_json(files.config, config_name, {});
      read_config(json_field(document, config_name));
    }
    if (!files.special_tokens.empty()) {
      const auto document = parse_json(files.special_tokens, special_name, {});
      read_specials(json_field(document, special_name));
    }
    if (!files.added_tokens.empty() && !lists_added_) {
      const auto document = parse_json(files.added_tokens, added_name, {});
      read_added(json_field(document, added_name));
    }
    finish();
    return std::move(out_);
  }

  tokenizer_config read_names(const settings_files& files) {
    if (!files.config.empty()) {
      const auto document = parse_json(files.config, config_name, {});
      const json_field file(document, config_name);
      out_.clean_up_spaces = flag(file, "clean_up_tokenization_spaces");
      name_token(file, "bos_token", out_.bos);
    }
    if (!files.special_tokens.empty()) {
      const auto document = parse_json(files.special_tokens, special_name, {});
      name_token(json_field(document, special_name), "bos_token", out_.bos);
    }
    return out_.config();
  }

 private:
  void read_config(const json_field& file) {
    out_.class_name = class_of(file);
    out_.clean_up_spaces = flag(file, "clean_up_tokenization_spaces");
    out_.adds_bos = flag(file, "add_bos_token");
    out_.adds_eos = flag(file, "add_eos_token");
    out_.legacy = flag(file, "legacy");
    out_.leading_space = flag(file, "add_prefix_space");
    read_specials(file);
    if (const auto list = file.find("added_tokens_decoder")) read_decoder(*list);
  }

  static std::optional<bool> flag(const json_field& file, std::string_view key) {
    const auto field = file.find(key);
    return field ? std::optional(field->boolean()) : std::nullopt;
  }

  // `auto_map.AutoTokenizer` is "module.Class", or two of these: a slow one, and a fast one or null.
  static std::string class_of(const json_field& file) {
    if (const auto named = file.find("tokenizer_class")) return std::string(named->text());
    const auto map = file.find("auto_map");
    const auto entry = map ? map->find("AutoTokenizer") : std::nullopt;
    if (!entry) return {};
    std::string_view name = entry->is_array() && !entry->array().empty() && entry->array()[0].is_string()
                                ? std::string_view(entry->array()[0].get_string())
                                : entry->text();
    return std::string(name.substr(name.rfind('.') + 1));
  }

  // The first file that has a key counts, even if its value is null.
  void name_token(const json_field& file, std::string_view key, std::optional<std::string>& to) {
    if (to || !file.object().contains(key)) return;
    const auto field = file.find(key);
    to = field ? parse_token_name(*field) : std::string();
  }

  void read_specials(const json_field& file) {
    name_token(file, "bos_token", out_.bos);
    name_token(file, "eos_token", out_.eos);
    for (const char* key :
         {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
      if (const auto field = file.find(key)) out_.special.push_back(parse_token_name(*field));
    if (const auto more = file.find("additional_special_tokens"))
      for (const json_field& item : more->items()) out_.special.push_back(parse_token_name(item));
  }

  void read_decoder(const json_field& list) {
    lists_added_ = true;
    for (const auto& [key, value] : list.object()) {
      const std::string_view digits = key;
      std::int64_t id = -1;
      const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
      if (failed != std::errc() || end != digits.data() + digits.size() || id < 0 || id > largest_added_id)
        list.bad(fmt::format("'{}' is not an id in [0, {}]", digits.substr(0, 20), largest_added_id));
      added_token t = parse_added_token(json_field(value, fmt::format("{}.{}", list.path(), digits)));
      t.id = static_cast<token_id>(id);
      out_.added.push_back(std::move(t));
    }
  }

  void read_added(const json_field& list) {
    for (const auto& [content, id] : list.object()) {
      added_token t;
      t.content = content;
      t.id = static_cast<token_id>(
          json_field(id, fmt::format("{}.{}", added_name, t.content.substr(0, 60)))
              .integer(0, largest_added_id));
      out_.added.push_back(std::move(t));
    }
  }

  void finish() {
    std::ranges::sort(out_.special);
    std::ranges::stable_sort(out_.added, {}, &added_token::id);
    for (std::size_t i = 0; i < out_.added.size(); ++i) {
      added_token& t = out_.added[i];
      if (i > 0 && t.id == out_.added[i - 1].id)
        bad_field(lists_added_ ? config_name : added_name, fmt::format("id {} has two tokens", t.id));
      if (std::ranges::binary_search(out_.special, t.content)) t.special = true;
    }
  }

  tokenizer_settings out_;
  bool lists_added_ = false;  // tokenizer_config.json lists all added tokens
};

}  // namespace

tokenizer_settings parse_settings(const settings_files& files) { return reader().read(files); }

tokenizer_config parse_config_alone(const settings_files& files) { return reader().read_names(files); }

}  // namespace weir::core
