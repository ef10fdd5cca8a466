#include "core/text/tokenizer/post_processor.h"

#include <limits>

namespace weir::core {
namespace {

token_id parse_id(const json_field& field) {
  return static_cast<token_id>(field.integer(0, std::numeric_limits<token_id>::max()));
}

// `field`: like ["<s>", 1].
token_id parse_named_id(const json_field& field) {
  const auto both = field.items();
  if (both.size() != 2) field.bad("must be a piece and its id");
  return parse_id(both[1]);
}

void append_special(const json_field& item, const json_field& specials, std::vector<token_id>& out) {
  const json_field ids = specials.at(item.at("id").text()).at("ids");
  for (const json_field& id : ids.items()) out.push_back(parse_id(id));
}

}  // namespace

post_processor::post_processor(const std::optional<json_field>& field) {
  if (field) add(*field);
}

void post_processor::add(const json_field& field) {
  constexpr std::size_t most_tokens = 256;
  const std::string_view type = field.at("type").text();
  if (type == "Sequence") {
    for (const json_field& step : field.at("processors").items()) add(step);
  } else if (type == "TemplateProcessing") {
    add_template(field);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    wrap({parse_named_id(field.at("cls"))}, {parse_named_id(field.at("sep"))});
  } else if (type != "ByteLevel") {  // ByteLevel changes offsets, not ids
    field.refuse(fmt::format("post-processor '{}'", type));
  }
  if (before_.size() + after_.size() > most_tokens)
    field.bad(fmt::format("post-processor '{}' puts more than {} tokens around a text", type, most_tokens));
}

void post_processor::add_template(const json_field& field) {
  const json_field single = field.at("single");
  std::vector<token_id> before, after;
  int texts = 0;
  for (const json_field& item : single.items()) {
    if (const auto special = item.find("SpecialToken")) {
      append_special(*special, field.at("special_tokens"), texts == 0 ? before : after);
    } else if (item.at("Sequence").at("id").text() == "A") {
      ++texts;
    } else {
      item.bad("a single template has text A alone");
    }
  }
  if (texts != 1) single.bad("must have text A once");
  wrap(before, after);
}

void post_processor::wrap(const std::vector<token_id>& before, const std::vector<token_id>& after) {
  before_.insert(before_.begin(), before.begin(), before.end());
  after_.insert(after_.end(), after.begin(), after.end());
}

}  // namespace weir::core
