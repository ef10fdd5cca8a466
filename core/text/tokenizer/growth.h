// growth.h — bounds what the rules of a tokenizer.json may make of a text: how many rules there are, and how
// many times as long a text may become. A model's files are foreign, and any text of a client goes through
// these rules.
//
// Unicode forms and cases do not count: they make a text at most 11 times as long, however often they run.
//
// Thread safety: none; one thread loads a file.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/text/json_field.h"

namespace weir::core {

class text_growth {
 public:
  static constexpr std::size_t most_rules = 64;
  static constexpr double most_times = 32;

  // `kind`: of the rules, for messages.
  explicit text_growth(std::string_view kind) : kind_(kind) {}

  // Counts a rule behind which a text may be `times` as long as before it. Throws refusal with the rule's
  // name. `field`: the rule.
  void count(const json_field& field, std::string_view name, double times = 1) {
    if (++rules_ > most_rules)
      field.bad(fmt::format("{} '{}' is one of more than {} rules", kind_, name, most_rules));
    if ((times_ *= times) > most_times)
      field.bad(
          fmt::format("{} '{}' makes a text more than {} times as long, together with the rules before it",
                      kind_, name, most_times));
  }

 private:
  const std::string_view kind_;
  std::size_t rules_ = 0;
  double times_ = 1;
};

}  // namespace weir::core
