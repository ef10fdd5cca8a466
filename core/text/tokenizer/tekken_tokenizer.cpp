#include "core/text/tokenizer/tekken_tokenizer.h"

#include <algorithm>

#include "core/text/tokenizer/ranked_tokens.h"

namespace weir::core {
namespace {

constexpr std::int64_t most_special = 1 << 16;

// [id] A rank that is not listed is a filler.
std::vector<added_token> special_tokens(const json_field& file, std::int64_t count) {
  const auto list = file.find("special_tokens");
  if (!list) file.refuse("a file without 'special_tokens'");
  std::vector<added_token> out;
  for (std::int64_t id = 0; id < count; ++id)
    out.push_back(
        {.content = fmt::format("<SPECIAL_{}>", id), .id = static_cast<token_id>(id), .special = true});
  for (const json_field& item : list->items()) {
    added_token& t = out[static_cast<std::size_t>(item.at("rank").integer(0, count - 1))];
    t.content = item.at("token_str").text();
    t.special = item.boolean_or("is_control", true);
  }
  return out;
}

// The first `count` tokens; the file may have more than the model.
ranked_tokens first_tokens(const json_field& list, std::int64_t count) {
  ranked_tokens out;
  const auto items = list.items();
  if (static_cast<std::int64_t>(items.size()) < count)
    list.bad(fmt::format("has {} tokens, and 'default_vocab_size' asks for {}", items.size(), count));
  for (std::int64_t i = 0; i < count; ++i) {
    const json_field& item = items[static_cast<std::size_t>(i)];
    if (item.at("rank").integer(0, count - 1) != i) item.at("rank").bad(fmt::format("must be {}", i));
    out.add(item.at("token_bytes").text(), static_cast<std::size_t>(i), item.path());
  }
  return out;
}

}  // namespace

std::shared_ptr<const tokenizer> tekken_tokenizer(std::string_view text) {
  boost::json::monotonic_resource memory;
  const auto document = parse_json(text, "tekken.json", &memory);
  const json_field file(document, "tekken.json"), config = file.at("config");
  const std::int64_t special = config.at("default_num_special_tokens").integer(1, most_special);
  const std::int64_t all = config.at("default_vocab_size").integer(special + 1, largest_added_id);
  const auto specials = special_tokens(file, special);
  const ranked_tokens tokens = first_tokens(file.at("vocab"), all - special);
  const std::string expression(config.at("pattern").text());
  tokenizer_parts parts = tokens.parts({expression, false, static_cast<std::size_t>(special)}, file.path());
  const auto bos = std::ranges::find(specials, "<s>", &added_token::content);
  if (bos == specials.end()) file.at("special_tokens").bad("has no \"<s>\"");
  parts.around = post_processor({bos->id}, {});
  parts.added = added_tokens(specials, parts.normal, "tekken.json.special_tokens");
  const tokenizer_config settings{.bos = "<s>", .clean_up_spaces = false};
  return std::make_shared<const hf_tokenizer>(std::move(parts), settings, file.path());
}

}  // namespace weir::core
