// Any bytes as a table of replacements: it is refused, or it keeps texts valid and within its own bound.
#include "core/text/tokenizer/charsmap.h"

#include <cstdint>
#include <cstdlib>

#include "core/text/json_field.h"
#include "core/text/tokenizer/sentence_normalizer.h"
#include "core/text/tokenizer/unicode.h"

using namespace weir::core;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    sentence_rules rules;
    rules.replacements.emplace(input, "table");
    rules.removes_extra_spaces = size % 2 == 0;
    const double times = growth_of(rules);
    for (const std::string_view text : {"abcABC  \n\t x", "nai\u0308ve e\u0301 漢字 🍓 \uFDFA\uFF21", "a", " "}) {
      const std::string out = normalize(text, true, rules);
      if (!is_valid_utf8(out)) std::abort();
      if (static_cast<double>(out.size()) > times * static_cast<double>(text.size())) std::abort();
      if (rules.replacements->shortest(text).size > rules.replacements->longest(text).size) std::abort();
    }
  } catch (const refusal& r) {
    if (r.why.message.empty()) std::abort();
  }
  return 0;
}
