#include "net/load/plain_delta.h"

#include <algorithm>

namespace weir::load {
namespace {

// Reads the value of a flat object's field at the beginning of `rest`, and removes it: a string of ASCII
// without escapes, or a number of digits. Returns false for any other value.
bool take_string(std::string_view& rest, std::string_view& value) {
  if (!rest.starts_with('"')) return false;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    const auto c = static_cast<unsigned char>(rest[i]);
    if (c < ' ' || c == '\\' || c >= 0x80) return false;
    if (c != '"') continue;
    value = rest.substr(1, i - 1);
    rest.remove_prefix(i + 1);
    return true;
  }
  return false;
}
bool take_number(std::string_view& rest, std::optional<std::int64_t>& value) {
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0 || digits > 18 || (digits > 1 && rest[0] == '0')) return false;
  std::int64_t v = 0;
  for (const char c : rest.substr(0, digits)) v = 10 * v + (c - '0');
  value = v;
  rest.remove_prefix(digits);
  return true;
}

}  // namespace

std::optional<plain_delta> read_plain(std::string_view rest) {
  plain_delta d;
  for (char before = '{'; rest.starts_with(before); before = ',') {
    rest.remove_prefix(1);
    std::string_view name;
    if (!take_string(rest, name) || !rest.starts_with(':')) return std::nullopt;
    rest.remove_prefix(1);
    const bool known = name == "type"    ? take_string(rest, d.type)
                       : name == "id"    ? take_string(rest, d.id)
                       : name == "delta" ? take_string(rest, d.text)
                       : name == "seq"   ? take_number(rest, d.seq)
                       : name == "n"     ? take_number(rest, d.n)
                       : name == "t"     ? take_number(rest, d.sampled)
                                         : false;
    if (!known) return std::nullopt;
  }
  if (rest != "}" || d.type != "response.delta") return std::nullopt;
  return d;
}

}  // namespace weir::load
