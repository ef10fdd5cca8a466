// metaspace.h — how sentencepiece-like vocabularies spell spaces: the part of Metaspace that its
// pre-tokenizer and its decoder share. Plain data: any thread.
#pragma once

#include <string>

#include "core/text/json_field.h"

namespace weir::core {

struct metaspace_rules {
  enum class scheme { always, first, never };  // which texts get a replacement in front

  explicit metaspace_rules(const json_field& field) : replacement(field.at("replacement").text()) {
    if (replacement.empty()) field.at("replacement").bad("must not be empty");
    const auto named = field.find("prepend_scheme");
    const std::string_view name = named ? named->text() : "always";
    if (name != "always" && name != "first" && name != "never") named->refuse(fmt::format("'{}'", name));
    prepend = name == "always" ? scheme::always : name == "first" ? scheme::first : scheme::never;
    if (!field.boolean_or("add_prefix_space", true)) prepend = scheme::never;
  }

  std::string replacement;
  scheme prepend = scheme::always;
};

}  // namespace weir::core
