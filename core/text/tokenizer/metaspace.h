// metaspace.h — how vocabularies like SentencePiece's spell spaces: the fields that the Metaspace
// pre-tokenizer and the Metaspace decoder share.
//
// Thread safety: plain data; any thread.
#pragma once

#include <string>

#include "core/text/json_field.h"

namespace weir::core {

struct metaspace_rules {
  // Which words get a replacement in front: all, only the one that starts the whole text, or none.
  enum class scheme { always, first, never };

  // Throws refusal.
  explicit metaspace_rules(const json_field& field) : replacement(field.at("replacement").text()) {
    if (replacement.empty()) field.at("replacement").bad("must not be empty");
    const auto named = field.find("prepend_scheme");
    const std::string_view name = named ? named->text() : "always";
    if (name != "always" && name != "first" && name != "never") named->refuse(fmt::format("'{}'", name));
    prepend = name == "always" ? scheme::always : name == "first" ? scheme::first : scheme::never;
    if (!field.boolean_or("add_prefix_space", true)) prepend = scheme::never;
  }

  std::string replacement;  // stands for a space; not empty
  scheme prepend = scheme::always;
};

}  // namespace weir::core
