// normalizer.h — the `normalizer` of tokenizer.json: changes text before it is cut into words.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/text/json_field.h"
#include "core/text/tokenizer/charsmap.h"
#include "core/text/tokenizer/growth.h"
#include "core/text/tokenizer/regex.h"
#include "core/text/tokenizer/sentence_normalizer.h"

namespace weir::core {

class normalizer {
 public:
  // Without `field`, text stays as it is. Throws refusal, also for what growth.h bounds.
  explicit normalizer(const std::optional<json_field>& field);
  // Throws refusal for what growth.h bounds. `path`: the field of the rules' table, for errors.
  normalizer(sentence_rules rules, const std::string& path);

  // `opens`: `text` is the start of what is being encoded. `at`: turn.h; this throws nobody_waits. REQUIRES:
  // `text` is valid UTF-8, and stays so. Returns whether the text still begins with what it began with: false
  // where a step removed that. Then the text is no start for rules that treat one in their own way.
  bool apply(std::string& text, bool opens = true, turn* at = nullptr) const;
  bool empty() const noexcept { return steps_.empty() && !sentence_; }

  enum class form { nfc, nfd, nfkc, nfkd };
  struct strip {
    bool left, right;
  };
  struct lowercase {};
  struct strip_accents {};
  struct prepend {
    std::string what;
  };
  struct replace {
    pattern what;
    std::string by;
  };
  struct nmt {};
  struct precompiled {
    charsmap map;
  };

 private:
  double add_precompiled(const json_field& field);
  void add(const json_field& field, text_growth& so_far);

  std::vector<std::variant<form, strip, lowercase, strip_accents, prepend, replace, nmt, precompiled>> steps_;
  std::optional<sentence_rules> sentence_;  // then there are no steps
};

}  // namespace weir::core
