#include "core/grammar/json_text.h"

#include <array>
#include <string>

#include "core/grammar/regex/code_points.h"

namespace weir::core::grammar {
namespace {

constexpr std::uint32_t most_digits = 64, most_exponent_digits = 5, most_indent = 64;

regex_id set_of(regex_pool& pool, std::string_view bytes) {
  byte_set set;
  for (const char c : bytes) set.set(static_cast<unsigned char>(c));
  return pool.bytes(set);
}

regex_id digit(regex_pool& pool) { return set_of(pool, "0123456789"); }
regex_id hex(regex_pool& pool) { return set_of(pool, "0123456789abcdefABCDEF"); }

// The escape \uXXXX of a code point that is no surrogate, or two escapes that are a pair of surrogates.
regex_id unicode_escapes(regex_pool& pool) {
  const auto u = pool.literal("\\u"), h = hex(pool), d = set_of(pool, "dD");
  const std::array plain{u, set_of(pool, "0123456789abcefABCEF"), h, h, h};
  const std::array below{u, d, set_of(pool, "01234567"), h, h};
  const std::array pair{u, d, set_of(pool, "89abAB"), h, h, u, d, set_of(pool, "cdefCDEF"), h, h};
  return pool.either(std::array{pool.concat(plain), pool.concat(below), pool.concat(pair)});
}

// Whole numbers from 1 on, without leading zeros and with at most most_digits digits.
regex_id whole_digits(regex_pool& pool) {
  return pool.concat(set_of(pool, "123456789"), pool.repeat(digit(pool), 0, most_digits - 1));
}

}  // namespace

regex_id json_text::space() {
  if (space_language_ == regex_pool::nothing) space_language_ = make_space();
  return space_language_;
}

regex_id json_text::make_space() {
  auto& pool = rules_.regex();
  switch (space_) {
    case json_space::compact:
      return regex_pool::empty;
    case json_space::any:
      return pool.any_number(set_of(pool, " \t\r\n"));
    case json_space::bounded:
      break;
  }
  const auto line_end = pool.concat(pool.maybe(pool.byte('\r')), pool.byte('\n'));
  const auto indented = pool.concat(line_end, pool.repeat(set_of(pool, " \t"), 0, most_indent));
  return pool.maybe(pool.either(pool.byte(' '), indented));
}

regex_id json_text::string_character() {
  if (character_ != regex_pool::nothing) return character_;
  auto& pool = rules_.regex();
  auto raw = code_points(0x20, 0x10FFFF).without(code_points::of(U"\"\\"));
  const auto brief = pool.concat(pool.byte('\\'), set_of(pool, "\"\\/bfnrt"));
  character_ = pool.either(std::array{one_of(pool, raw), brief, unicode_escapes(pool)});
  return character_;
}

regex_id json_text::string() { return string(0, unbounded); }

regex_id json_text::string(std::uint32_t min, std::uint32_t max) {
  return string_of(rules_.regex().repeat(string_character(), min, max));
}

regex_id json_text::string_of(regex_id content) {
  auto& pool = rules_.regex();
  return pool.concat(std::array{pool.byte('"'), content, pool.byte('"')});
}

regex_id json_text::number() {
  auto& pool = rules_.regex();
  const auto d = digit(pool);
  const auto whole = pool.either(pool.byte('0'), whole_digits(pool));
  const auto fraction = pool.concat(pool.byte('.'), pool.repeat(d, 1, most_digits));
  const std::array exponent{set_of(pool, "eE"), pool.maybe(set_of(pool, "+-")),
                            pool.repeat(d, 1, most_exponent_digits)};
  const std::array all{pool.maybe(pool.byte('-')), whole, pool.maybe(fraction),
                       pool.maybe(pool.concat(exponent))};
  return pool.concat(all);
}

regex_id json_text::integer() {
  auto& pool = rules_.regex();
  const auto other = pool.concat(pool.maybe(pool.byte('-')), whole_digits(pool));
  return pool.either(pool.byte('0'), other);
}

regex_id json_text::boolean() { return rules_.regex().literals({"true", "false"}); }

part_id json_text::open(char bracket) {
  auto& pool = rules_.regex();
  return rules_.terminal(pool.concat(pool.byte(static_cast<unsigned char>(bracket)), space()));
}

regex_id json_text::comma_text() {
  auto& pool = rules_.regex();
  return pool.concat(std::array{space(), pool.byte(','), space()});
}

part_id json_text::comma() { return rules_.terminal(comma_text()); }

part_id json_text::close(char bracket) {
  auto& pool = rules_.regex();
  return rules_.terminal(pool.concat(space(), pool.byte(static_cast<unsigned char>(bracket))));
}

part_id json_text::name_of_string(regex_id string) {
  auto& pool = rules_.regex();
  return rules_.terminal(pool.concat(std::array{string, space(), pool.byte(':'), space()}));
}

part_id json_text::name(regex_id content) { return name_of_string(string_of(content)); }

// levels_[d]: values whose arrays and objects are nested at most d deep.
const json_text::level& json_text::at_depth(std::uint32_t depth) {
  auto& pool = rules_.regex();
  if (levels_.empty()) {
    const std::array scalars{string(), number(), boolean(), pool.literal("null")};
    levels_.push_back({rules_.terminal(pool.either(scalars)), rules::nothing, rules::nothing});
  }
  if (levels_.size() > depth) return levels_[depth];
  const auto between = comma(), a_name = any_name();
  const auto list = [&](part_id opening, part_id item, char closing, part_id ending) {
    const auto more = rules_.any_number(rules_.sequence({between, item}));
    const auto none = rules_.literal(std::string_view(&closing, 1));
    return rules_.sequence({opening, rules_.choice({none, rules_.sequence({item, more, ending})})});
  };
  const auto scalar = levels_[0].value;
  const std::array ends{open('{'), close('}'), open('['), close(']')};
  while (levels_.size() <= depth) {
    const auto inner = levels_.back().value;
    level next;
    next.object = list(ends[0], rules_.sequence({a_name, inner}), '}', ends[1]);
    next.array = list(ends[2], inner, ']', ends[3]);
    next.value = rules_.choice({scalar, next.object, next.array});
    levels_.push_back(next);
  }
  return levels_[depth];
}

part_id json_text::value(std::uint32_t depth) { return at_depth(depth).value; }
part_id json_text::object(std::uint32_t depth) { return at_depth(depth).object; }
part_id json_text::array(std::uint32_t depth) { return at_depth(depth).array; }

}  // namespace weir::core::grammar
