#include "tests/stranger/json_text.h"

#include <cstdio>

#include "tests/stranger/bytes.h"

namespace weir::stranger {
namespace {

std::string nested(random_source& draw) {
  static constexpr std::size_t depths[] = {4, 15, 16, 17, 31, 32, 33, 1000, 100'000};
  const std::size_t depth = draw.pick(depths);
  const bool closed = draw.chance(70), array = draw.chance(50);
  return repeated(array ? "[" : "{\"a\":", depth) + "1" + (closed ? repeated(array ? "]" : "}", depth) : "");
}

std::string huge(random_source& draw) {
  const std::size_t n = draw.between(1'000, 500'000);
  switch (draw.below(4)) {
    case 0:
      return quoted(std::string(n, 'a'));
    case 1:
      return "[" + repeated("1,", n / 2) + "1]";
    case 2:
      return std::string(n, '9');
    default:
      return "{" + quoted(std::string(n, 'k')) + ":1}";
  }
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    char escape[8];
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (code < 0x20) {
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string object(const std::vector<field>& fields) {
  std::string out = "{";
  for (const field& f : fields) {
    if (out.size() > 1) out += ',';
    (out += quoted(f.name)) += ':';
    out += f.value;
  }
  return out + '}';
}

std::string number_list(random_source& draw, std::size_t n, std::size_t below) {
  std::string out = "[";
  for (; n > 0; --n) {
    if (out.size() > 1) out += ',';
    out += std::to_string(draw.below(below));
  }
  return out + ']';
}

std::string odd_value(random_source& draw) {
  static const std::string odd[] = {"1e400",
                                    "-1e400",
                                    "NaN",
                                    "Infinity",
                                    "-0",
                                    "0",
                                    "-1",
                                    "1.5",
                                    "01",
                                    "1e",
                                    "9223372036854775808",
                                    "9223372036854775807",
                                    "-9223372036854775808",
                                    "18446744073709551615",
                                    "18446744073709551616",
                                    "4294967296",
                                    "2147483648",
                                    "1e-400",
                                    "0.1e1",
                                    "true",
                                    "false",
                                    "null",
                                    "nul",
                                    "\"\"",
                                    "\"\\ud800\"",
                                    "\"\\udc00\\ud800\"",
                                    "\"\\u0000\"",
                                    "\"\\x\"",
                                    "\"open",
                                    "'a'",
                                    "[]",
                                    "{}",
                                    "[[]]",
                                    "[null]",
                                    "[1,\"a\",{}]",
                                    "{\"a\":{\"a\":1}}",
                                    "[-1]",
                                    "[1e9]",
                                    "[4294967296]",
                                    "{\"0\":-100}",
                                    "{\"-1\":100}",
                                    "{\"9999999\":1e308}",
                                    "\"1\"",
                                    ""};
  const std::size_t kind = draw.below(100);
  if (kind < 70) return draw.pick(odd);
  if (kind < 80) return nested(draw);
  if (kind < 88) return huge(draw);
  if (kind < 96) return quoted(odd_text(draw));
  return std::to_string(draw.next());
}

std::string spoiled_object(random_source& draw, std::vector<field> fields) {
  for (std::size_t n = draw.between(1, 3); n > 0; --n) {
    const std::size_t at = draw.below(fields.size());
    const field chosen = fields[at];
    switch (draw.below(8)) {
      case 0:
        fields.push_back(chosen);
        break;
      case 1:
        fields.push_back({chosen.name, odd_value(draw)});
        break;
      case 2:
        fields.push_back({odd_text(draw), odd_value(draw)});
        break;
      case 3:
        if (fields.size() > 1) fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 4:
        fields.push_back({std::string(draw.between(1, 500'000), 'n'), "1"});
        break;
      default:
        fields[at].value = odd_value(draw);
    }
  }
  std::string text = object(fields);
  if (draw.chance(10)) text = damaged(draw, std::move(text));
  if (draw.chance(5)) text += text;
  if (draw.chance(5)) text.resize(draw.below(text.size()));
  return text;
}

}  // namespace weir::stranger
