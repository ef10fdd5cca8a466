#include "core/model_limits.h"

#include <charconv>
#include <string>

#include "core/shortened.h"

namespace weir::core {

result<> set_limit(model_limits& l, std::string_view name, std::uint64_t n, std::string_view param) {
  result<> done =
      bad_param(std::string(param),
                "{}: there is no limit '{}'; there are batch, queue, queue_tokens, kv_tokens and max_tokens",
                param, shortened(name));
  visit_limits([&](std::string_view of, auto member, std::uint64_t least, std::uint64_t most) {
    if (of != name) return;
    if (n < least || n > most) {
      done = bad_param(std::string(param), "{}: {} must be in [{}, {}], not {}", param, name, least, most, n);
      return;
    }
    l.*member = n;
    done = {};
  });
  return done;
}

result<model_limits> parse_limits(std::string_view text, std::string_view param) {
  model_limits out;
  for (std::string_view rest = text; !rest.empty() || text.empty();) {
    const auto comma = rest.find(',');
    const std::string_view one = rest.substr(0, comma);
    const auto colon = one.find(':');
    std::uint64_t n = 0;
    const std::string_view digits = colon == one.npos ? std::string_view() : one.substr(colon + 1);
    const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    const bool last_is_empty = comma != rest.npos && comma + 1 == rest.size();
    if (wrong != std::errc() || end != digits.data() + digits.size() || last_is_empty)
      return bad_param(std::string(param), "{}: LIMIT:N,LIMIT:N is wanted, not '{}'", param, shortened(text));
    const model_limits before = out;
    if (auto ok = set_limit(out, one.substr(0, colon), n, param); !ok) return ok.error();
    bool twice = false;
    visit_limits([&](std::string_view of, auto member, auto...) {
      twice = twice || (of == one.substr(0, colon) && (before.*member).has_value());
    });
    if (twice) return bad_param(std::string(param), "{}: {} is there twice", param, one.substr(0, colon));
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  return out;
}

}  // namespace weir::core
