// A regular expression, then "\n---\n" and a text that its automaton walks along.
#include <cstdint>
#include <string_view>

#include "core/grammar/regex/regex.h"

using namespace weir::core::grammar;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find("\n---\n");
  const auto expression = input.substr(0, cut);
  for (const auto how : {regex_options::match::whole, regex_options::match::search}) {
    regex_pool pool(20'000);
    regex_options options;
    options.how = how;
    const auto r = parse_regex(pool, expression, options);
    if (!r) {
      if (r.error().offset > expression.size() || r.error().message.empty()) __builtin_trap();
      continue;
    }
    auto state = *r;
    if (cut != input.npos)
      for (const char c : input.substr(cut + 5, 200))
        state = pool.transition(state, static_cast<unsigned char>(c));
    if (pool.nullable(state) && state == regex_pool::nothing) __builtin_trap();
  }
  return 0;
}
