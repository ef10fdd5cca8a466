#include "core/grammar/schema/texts.h"

#include "core/grammar/schema/formats.h"

namespace weir::core::grammar {

std::optional<regex_id> schema_texts::parse(json_node_id blamed, std::string_view what,
                                            std::string_view expression, regex_options::match how,
                                            spelling as) {
  regex_options options;
  options.how = how;
  options.as = as;
  const auto parsed = parse_regex(pool_, expression, options);
  if (parsed) return *parsed;
  keywords_.relax(blamed, fmt::format("{} \"{}\": {} at byte {}", what, expression.substr(0, 80),
                                      parsed.error().message, parsed.error().offset));
  return std::nullopt;
}

std::optional<regex_id> schema_texts::language(const text_rule& rule, spelling as) {
  text_rule key = rule;
  key.negated = false;
  const auto [at, made] = known_.try_emplace({key, as});
  if (!made) return at->second;
  const std::string& text = tree_[rule.value].text;
  if (!rule.format) return at->second = parse(rule.value, "pattern", text, regex_options::match::search, as);
  switch (use_of_format(text)) {
    case format_use::asserted:
      at->second = parse(rule.value, "format", format_expression(text), regex_options::match::whole, as);
      if (const std::uint32_t most = format_max_length(text); at->second && most != unbounded)
        at->second = pool_.both(*at->second, text_of_length(pool_, 0, most, as));
      break;
    case format_use::annotation:
      break;
    case format_use::missing:
      keywords_.relax(rule.value, fmt::format("format \"{}\" is not supported", text));
      break;
    case format_use::unknown:
      keywords_.warn(rule.value,
                     fmt::format("format \"{}\" is not known, and asks nothing", text.substr(0, 80)));
      break;
  }
  return at->second;
}

std::optional<regex_id> schema_texts::name_language(json_node_id member, spelling as) {
  const auto [at, made] = known_names_.try_emplace({member, as});
  if (!made) return at->second;
  const json_node& n = tree_[member];
  const std::string& expression = tree_[n.parent].names[n.place];
  return at->second =
             parse(member, "the name in patternProperties", expression, regex_options::match::search, as);
}

bool schema_texts::contains(regex_id language, std::string_view text) {
  for (const char c : text) {
    language = pool_.transition(language, static_cast<unsigned char>(c));
    if (language == regex_pool::nothing) return false;
  }
  return pool_.nullable(language);
}

}  // namespace weir::core::grammar
