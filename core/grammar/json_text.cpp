#include "core/grammar/json_text.h"

#include <array>
#include <string>

#include "core/grammar/regex/code_points.h"

namespace weir::core::grammar {
namespace {

constexpr std::uint32_t most_digits = 64, most_exponent_digits = 5, most_indent = 64, most_made_up = 64;

regex_id set_of(regex_pool& pool, std::string_view bytes) {
  byte_set set;
  for (const char c : bytes) set.set(static_cast<unsigned char>(c));
  return pool.bytes(set);
}

regex_id digit(regex_pool& pool) { return set_of(pool, "0123456789"); }
regex_id hex(regex_pool& pool) { return set_of(pool, "0123456789abcdefABCDEF"); }

// The escape \uXXXX of a code point that is no surrogate, or two escapes that are a pair of surrogates.
regex_id unicode_escapes(regex_pool& pool, bool pairs) {
  const auto u = pool.literal("\\u"), h = hex(pool), d = set_of(pool, "dD");
  const std::array plain{u, set_of(pool, "0123456789abcefABCEF"), h, h, h};
  const std::array below{u, d, set_of(pool, "01234567"), h, h};
  const std::array pair{u, d, set_of(pool, "89abAB"), h, h, u, d, set_of(pool, "cdefCDEF"), h, h};
  const auto one = pool.either(pool.concat(plain), pool.concat(below));
  return pairs ? pool.either(one, pool.concat(pair)) : one;
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
  if (how_.quotes()) return character_ = one_of(pool, code_points::all());
  auto& known = pool.remembered(how_.what == value_notation::kind::python ? "json_text: character of Python"
                                                                          : "json_text: character");
  if (known == regex_pool::nothing) known = escaped_character();
  return character_ = known;
}

regex_id json_text::escaped_character() {
  auto& pool = rules_.regex();
  auto raw = code_points(0x20, 0x10FFFF).without(code_points::of(U"\"\\"));
  const bool python = how_.what == value_notation::kind::python;
  const auto brief = pool.concat(pool.byte('\\'), set_of(pool, python ? "\"\\bfnrt" : "\"\\/bfnrt"));
  return pool.either(std::array{one_of(pool, raw), brief, unicode_escapes(pool, !python)});
}

regex_id json_text::string() { return string(0, unbounded); }

regex_id json_text::string(std::uint32_t min, std::uint32_t max) {
  return string_of(rules_.regex().repeat(string_character(), min, max));
}

regex_id json_text::string_of(regex_id content) {
  auto& pool = rules_.regex();
  return pool.concat(std::array{pool.byte('"'), allowed(content), pool.byte('"')});
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

regex_id json_text::boolean() {
  return rules_.regex().literals({std::string(word(true)), std::string(word(false))});
}

std::string_view json_text::word(bool truth) const {
  if (how_.what == value_notation::kind::python) return truth ? "True" : "False";
  return truth ? "true" : "false";
}

std::string_view json_text::null() const {
  return how_.what == value_notation::kind::python ? "None" : "null";
}

// The texts of `content` that a string may have.
regex_id json_text::allowed(regex_id content) {
  if (how_.never.empty()) return content;
  auto& pool = rules_.regex();
  auto& without = pool.remembered("json_text: without " + how_.never);
  if (without == regex_pool::nothing) {
    const std::array found{regex_pool::anything, pool.literal(how_.never), regex_pool::anything};
    without = pool.complement(pool.concat(found));
  }
  return pool.both(content, without);
}

part_id json_text::string_part(regex_id content) {
  if (!how_.quotes()) return rules_.terminal(string_of(content));
  content = allowed(content);
  if (!rules_.regex().live(content)) return rules::nothing;
  return rules_.sequence({how_.quote, rules_.terminal(content), how_.quote});
}

part_id json_text::string_of_length(std::uint32_t min, std::uint32_t max) {
  return string_part(rules_.regex().repeat(string_character(), min, max));
}

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

part_id json_text::colon() {
  auto& pool = rules_.regex();
  return rules_.terminal(pool.concat(std::array{space(), pool.byte(':'), space()}));
}

// Names that stand without quotes.
regex_id json_text::plain_names() {
  auto& pool = rules_.regex();
  auto& names = pool.remembered("json_text: plain names");
  if (names == regex_pool::nothing) {
    const auto word = code_points(0x21, 0x10FFFF).without(code_points::of(U":{},[]()\"'<>|\\`"));
    names = pool.repeat(one_of(pool, word), 1, unbounded);
  }
  return names;
}

part_id json_text::name(regex_id content) {
  if (!how_.quotes()) return name_of_string(string_of(content));
  auto& pool = rules_.regex();
  if (!pool.finite(content)) {  // names that a model makes up
    const auto usual = code_points::all().without(code_points::of(U"<["));
    content = pool.both(content, pool.repeat(one_of(pool, usual), 0, most_made_up));
  }
  const auto plain = pool.both(content, plain_names());
  const auto other = pool.both(content, pool.complement(plain_names()));
  std::vector<part_id> ways;
  if (pool.live(plain)) ways.push_back(rules_.terminal(plain));
  if (pool.live(other)) ways.push_back(string_part(other));
  return rules_.sequence({rules_.choice(ways), colon()});
}

part_id json_text::name_of(std::string_view utf8) {
  auto& pool = rules_.regex();
  const auto content = pool.literal(spelled(utf8, how_.text()));
  if (!how_.quotes()) return name_of_string(string_of(content));
  regex_id plain = plain_names();
  for (const char c : utf8) plain = pool.transition(plain, static_cast<unsigned char>(c));
  return rules_.sequence({pool.nullable(plain) ? rules_.terminal(content) : string_part(content), colon()});
}

part_id json_text::any_name() {
  return how_.quotes() ? name(rules_.regex().repeat(string_character(), 0, unbounded))
                       : name_of_string(string());
}

part_id json_text::scalar() {
  auto& pool = rules_.regex();
  std::vector<regex_id> words{number(), boolean(), pool.literal(null())};
  if (how_.quotes())
    return rules_.choice({string_of_length(0, unbounded), rules_.terminal(pool.either(words))});
  words.push_back(string());
  return rules_.terminal(pool.either(words));
}

// levels_[d]: values whose arrays and objects are nested at most d deep.
const json_text::level& json_text::at_depth(std::uint32_t depth) {
  if (levels_.empty()) levels_.push_back({scalar(), rules::nothing, rules::nothing});
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
