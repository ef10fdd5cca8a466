#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/grammar/regex/unicode_names.h"

#include <pcre2.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/text/tokenizer/unicode.h"

namespace weir::core::grammar {
namespace {

struct category_name {
  std::string_view brief, full;
};

// In the order of utf8proc's categories, which are numbered from 0 (Cn) to 29 (Co).
constexpr std::array<category_name, 30> categories{{
    {"Cn", "Unassigned"},
    {"Lu", "Uppercase_Letter"},
    {"Ll", "Lowercase_Letter"},
    {"Lt", "Titlecase_Letter"},
    {"Lm", "Modifier_Letter"},
    {"Lo", "Other_Letter"},
    {"Mn", "Nonspacing_Mark"},
    {"Mc", "Spacing_Mark"},
    {"Me", "Enclosing_Mark"},
    {"Nd", "Decimal_Number"},
    {"Nl", "Letter_Number"},
    {"No", "Other_Number"},
    {"Pc", "Connector_Punctuation"},
    {"Pd", "Dash_Punctuation"},
    {"Ps", "Open_Punctuation"},
    {"Pe", "Close_Punctuation"},
    {"Pi", "Initial_Punctuation"},
    {"Pf", "Final_Punctuation"},
    {"Po", "Other_Punctuation"},
    {"Sm", "Math_Symbol"},
    {"Sc", "Currency_Symbol"},
    {"Sk", "Modifier_Symbol"},
    {"So", "Other_Symbol"},
    {"Zs", "Space_Separator"},
    {"Zl", "Line_Separator"},
    {"Zp", "Paragraph_Separator"},
    {"Cc", "Control"},
    {"Cf", "Format"},
    {"Cs", "Surrogate"},
    {"Co", "Private_Use"},
}};

// Groups of categories, by the letters that the short names begin with.
constexpr std::array<category_name, 9> groups{{{"L", "Letter"},
                                               {"M", "Mark"},
                                               {"M", "Combining_Mark"},
                                               {"N", "Number"},
                                               {"P", "Punctuation"},
                                               {"P", "punct"},
                                               {"S", "Symbol"},
                                               {"Z", "Separator"},
                                               {"C", "Other"}}};

// A bit for each category that the name means; 0: it names none.
std::uint32_t categories_named(std::string_view name) {
  std::uint32_t bits = 0;
  if (name == "LC" || name == "Cased_Letter") return 0b1110;  // Lu, Ll, Lt
  if (name == "digit") name = "Nd";
  if (name == "cntrl") name = "Cc";
  for (const auto& g : groups)
    if (name == g.full) name = g.brief;
  for (std::size_t i = 0; i < categories.size(); ++i) {
    const auto& c = categories[i];
    const bool in_group = name.size() == 1 && c.brief[0] == name[0];
    if (in_group || name == c.brief || name == c.full) bits |= 1u << i;
  }
  return bits;
}

code_points of_categories(std::uint32_t bits) {
  code_points out;
  constexpr char32_t end = 0x110000;
  for (char32_t c = 0; c < end; ++c) {
    const auto has = [&](char32_t x) {
      return (bits >> utf8proc_category(static_cast<utf8proc_int32_t>(x))) & 1;
    };
    if (!has(c)) continue;
    const auto first = c;
    while (c + 1 < end && has(c + 1)) ++c;
    out.add(first, c);
  }
  return out;
}

struct free_code {
  void operator()(pcre2_code* c) const { pcre2_code_free(c); }
};
struct free_match {
  void operator()(pcre2_match_data* m) const { pcre2_match_data_free(m); }
};

// Every code point that PCRE2 says has the property.
std::optional<code_points> of_pcre2(std::string_view name) {
  const auto pattern = "\\p{" + std::string(name) + "}";
  int error = 0;
  PCRE2_SIZE at = 0;
  const std::unique_ptr<pcre2_code, free_code> code(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF, &error, &at, nullptr));
  if (!code) return std::nullopt;
  const std::unique_ptr<pcre2_match_data, free_match> match(
      pcre2_match_data_create_from_pattern(code.get(), nullptr));
  code_points out;
  std::string text;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c == 0xD800) c = 0xE000;
    text.clear();
    append_utf8(text, c);
    const auto n = pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                               PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK, match.get(), nullptr);
    if (n > 0) out.add(c, c);
  }
  return out;
}

bool is_plain(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

std::optional<code_points> find_unicode_property(std::string_view name) {
  std::string_view property;
  if (const auto equals = name.find('='); equals != name.npos) {
    property = name.substr(0, equals);
    name.remove_prefix(equals + 1);
  }
  if (!is_plain(name)) return std::nullopt;
  const bool category = property == "General_Category" || property == "gc";
  const bool script = property == "Script" || property == "sc";
  const bool extension = property == "Script_Extensions" || property == "scx";
  if (!property.empty() && !category && !script && !extension) return std::nullopt;
  if (property.empty() || category) {
    if (const auto bits = categories_named(name)) return of_categories(bits);
    if (category) return std::nullopt;
    if (name == "Any") return code_points::all();
    if (name == "ASCII") return code_points(0, 0x7F);
    if (name == "Assigned") return of_categories(1).negated();
    if (name.size() <= 3 && (name[0] == 'X' || name == "L")) return std::nullopt;  // PCRE2's own
  }
  if (script) return of_pcre2("sc:" + std::string(name));
  if (extension) return of_pcre2("scx:" + std::string(name));
  return of_pcre2(name);
}

}  // namespace weir::core::grammar
