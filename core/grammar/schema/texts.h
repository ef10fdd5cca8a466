// texts.h — patterns and formats of a schema as languages, and whether a string of the schema is in one.
//
// Thread safety: one thread.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/grammar/regex/regex.h"
#include "core/grammar/schema/keywords.h"

namespace weir::core::grammar {

class schema_texts {
 public:
  schema_texts(regex_pool& pool, const json_tree& tree, schema_keywords& keywords)
      : pool_(pool), tree_(tree), keywords_(keywords) {}

  // The texts that follow the rule as if it were not negated. nullopt: the rule cannot be enforced, which was
  // warned of, or its format is an annotation.
  std::optional<regex_id> language(const text_rule& rule, spelling as);
  // The names that follow the pattern of a member of patternProperties. nullopt: it cannot be enforced, which
  // was warned of.
  std::optional<regex_id> name_language(json_node_id member_of_patterns, spelling as);

  bool contains(regex_id language, std::string_view text);

 private:
  std::optional<regex_id> parse(json_node_id blamed, std::string_view what, std::string_view expression,
                                regex_options::match how, spelling as);

  regex_pool& pool_;
  const json_tree& tree_;
  schema_keywords& keywords_;
  std::map<std::pair<text_rule, spelling>, std::optional<regex_id>> known_;
  std::map<std::pair<json_node_id, spelling>, std::optional<regex_id>> known_names_;
};

}  // namespace weir::core::grammar
