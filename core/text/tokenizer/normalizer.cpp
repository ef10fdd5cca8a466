#include "core/text/tokenizer/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "core/text/base64.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

bool is_ascii(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
}

std::size_t combining(utf8proc_int32_t c) {
  return static_cast<std::uint8_t>(utf8proc_get_property(c)->combining_class);
}

constexpr std::ptrdiff_t long_run = 256;  // marks; a shorter one is sorted sooner in the usual way

// Sorts a run of marks by combining class, those of a class in their order, in time linear in its length.
void order_run(std::span<utf8proc_int32_t> run) {
  constexpr std::size_t classes = 256;
  std::array<std::size_t, classes + 1> begins{};
  for (const auto c : run) ++begins[combining(c) + 1];
  for (std::size_t i = 0; i < classes; ++i) begins[i + 1] += begins[i];
  const std::vector<utf8proc_int32_t> old(run.begin(), run.end());
  for (const auto c : old) run[begins[combining(c)]++] = c;
}

// Canonical ordering. utf8proc's own sort takes time quadratic in the length of a run, which a client could
// exploit.
void order_marks(std::vector<utf8proc_int32_t>& text) {
  const auto starts = [](utf8proc_int32_t c) { return combining(c) == 0; };
  for (auto run = text.begin(); run != text.end();) {
    run = std::find_if_not(run, text.end(), starts);
    const auto end = std::find_if(run, text.end(), starts);
    if (end - run > long_run)
      order_run({run, end});
    else
      std::stable_sort(run, end, [](auto a, auto b) { return combining(a) < combining(b); });
    run = end;
  }
}

// Each step returns whether it kept what the text began with. Hugging Face's Precompiled counts as such a
// step even where its table drops the first characters.
bool apply_step(std::string& text, normalizer::form form, turn* at) {
  if (is_ascii(text)) return true;
  const bool compat = form == normalizer::form::nfkc || form == normalizer::form::nfkd;
  const bool composes = form == normalizer::form::nfc || form == normalizer::form::nfkc;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compat ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> wide;
  wide.reserve(text.size());
  utf8proc_int32_t parts[32];  // the longest decomposition has 18
  work_steps all(at);
  for (std::string_view rest = text; !rest.empty();) {
    all.add();
    const auto c = static_cast<utf8proc_int32_t>(take_character(rest));
    const auto n = utf8proc_decompose_char(c, parts, std::size(parts), options, nullptr);
    wide.insert(wide.end(), parts, parts + std::max<utf8proc_ssize_t>(n, 0));
  }
  all.add(wide.size());
  order_marks(wide);
  all.add(wide.size());
  if (composes) {
    const auto compose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    wide.resize(utf8proc_normalize_utf32(wide.data(), static_cast<utf8proc_ssize_t>(wide.size()), compose));
  }
  text.clear();
  for (const auto c : wide) {
    all.add();
    append_utf8(text, static_cast<char32_t>(c));
  }
  return true;
}

bool apply_step(std::string& text, normalizer::strip which, turn*) {
  std::size_t begin = 0, end = 0;
  bool leading = true;
  for (std::string_view rest = text; !rest.empty();) {
    const bool space = is_whitespace(take_character(rest));
    const std::size_t at = text.size() - rest.size();
    if (leading && space) begin = at;
    if (!space) end = at;
    leading = leading && space;
  }
  if (!which.left) begin = 0;
  if (!which.right) end = text.size();
  text = begin < end ? text.substr(begin, end - begin) : std::string();
  return begin == 0;
}

bool apply_step(std::string& text, normalizer::lowercase, turn* at) {
  std::string out;
  work_steps all(at);
  for (std::string_view rest = text; !rest.empty();) {
    all.add();
    const char32_t c = take_character(rest);
    if (c == 0x130) {
      out += "i\xCC\x87";  // the only character whose lower case is two characters
    } else {
      append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  }
  text = std::move(out);
  return true;
}

// Removes the characters that `drops` names, and puts `by(c)` for the others.
bool filter(std::string& text, turn* at, const auto& drops, const auto& by) {
  std::string out;
  work_steps all(at);
  bool keeps_start = true;
  for (std::string_view rest = text; !rest.empty();) {
    all.add();
    const bool first = rest.size() == text.size();
    const char32_t c = take_character(rest);
    if (!drops(c)) append_utf8(out, by(c));
    if (first) keeps_start = !drops(c);
  }
  text = std::move(out);
  return keeps_start;
}

bool apply_step(std::string& text, normalizer::strip_accents, turn* at) {
  return filter(text, at, is_mark, [](char32_t c) { return c; });
}

bool apply_step(std::string& text, const normalizer::prepend& p, turn*) {
  if (!text.empty()) text.insert(0, p.what);
  return true;
}

bool apply_step(std::string& text, const normalizer::replace& r, turn* at) {
  const bool drops = r.what.drops_start(text, r.by, at);
  text = r.what.replace(text, r.by, at);
  return !drops;
}

bool nmt_drops(char32_t c) noexcept {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F ||
         c == 0x9F;
}

bool nmt_is_space(char32_t c) noexcept {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

bool apply_step(std::string& text, normalizer::nmt, turn* at) {
  return filter(text, at, nmt_drops, [](char32_t c) { return nmt_is_space(c) ? U' ' : c; });
}

// The extended grapheme cluster that `text` begins with, in bytes.
std::size_t cluster_size(std::string_view text) noexcept {
  std::string_view rest = text;
  utf8proc_int32_t state = 0;
  for (auto c = static_cast<utf8proc_int32_t>(take_character(rest)); !rest.empty();) {
    std::string_view after = rest;
    const auto next = static_cast<utf8proc_int32_t>(take_character(after));
    if (utf8proc_grapheme_break_stateful(c, next, &state)) break;
    c = next;
    rest = after;
  }
  return text.size() - rest.size();
}

// As Hugging Face's tokenizers use the table: a cluster of less than 6 bytes is replaced whole, and else each
// character by itself; the shortest string of the table that begins there is taken.
bool apply_step(std::string& text, const normalizer::precompiled& p, turn* at) {
  constexpr std::size_t small = 6;
  std::string out;
  out.reserve(text.size());
  work_steps all(at);
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view cluster = rest.substr(0, cluster_size(rest));
    rest.remove_prefix(cluster.size());
    all.add(cluster.size());
    if (cluster.size() < small) {
      const auto found = p.map.shortest(cluster);
      if (found.size > 0) {
        out += found.by;
        continue;
      }
    }
    while (!cluster.empty()) {
      const std::string_view character = cluster.substr(0, character_size(cluster[0]));
      cluster.remove_prefix(character.size());
      const auto found = p.map.shortest(character);
      out += found.size > 0 ? found.by : character;
    }
  }
  text = std::move(out);
  return true;
}

}  // namespace

normalizer::normalizer(const std::optional<json_field>& field) {
  text_growth so_far("normalizer");
  if (field) add(*field, so_far);
}

normalizer::normalizer(sentence_rules rules, const std::string& path) {
  if (growth_of(rules) > text_growth::most_times)
    bad_field(path, fmt::format("makes a text more than {} times as long", text_growth::most_times));
  sentence_ = std::move(rules);
}

double normalizer::add_precompiled(const json_field& field) {
  const json_field table = field.at("precompiled_charsmap");
  const auto bytes = from_base64(table.text());
  if (!bytes) table.bad("is not base64");
  charsmap map(*bytes, table.path());
  const double times = map.growth(1);
  steps_.emplace_back(precompiled{std::move(map)});
  return times;
}

void normalizer::add(const json_field& field, text_growth& so_far) {
  const std::string_view type = field.at("type").text();
  if (type == "Sequence") {
    for (const json_field& step : field.at("normalizers").items()) add(step, so_far);
    return;
  }
  double times = 1;
  if (type == "NFC") {
    steps_.emplace_back(form::nfc);
  } else if (type == "NFD") {
    steps_.emplace_back(form::nfd);
  } else if (type == "NFKC") {
    steps_.emplace_back(form::nfkc);
  } else if (type == "NFKD") {
    steps_.emplace_back(form::nfkd);
  } else if (type == "Lowercase") {
    steps_.emplace_back(lowercase{});
  } else if (type == "StripAccents") {
    steps_.emplace_back(strip_accents{});
  } else if (type == "Strip") {
    steps_.emplace_back(strip{field.boolean_or("strip_left", true), field.boolean_or("strip_right", true)});
  } else if (type == "Prepend") {
    const std::string what(field.at("prepend").text());
    times += static_cast<double>(what.size());  // a text may be as short as one byte
    steps_.emplace_back(prepend{what});
  } else if (type == "Replace") {
    const replace r{pattern(field.at("pattern")), std::string(field.at("content").text())};
    times = r.what.growth_of(r.by);
    steps_.emplace_back(r);
  } else if (type == "Nmt") {
    steps_.emplace_back(nmt{});
  } else if (type == "Precompiled") {
    times = add_precompiled(field);
  } else {
    field.refuse(fmt::format("normalizer '{}'", type));
  }
  so_far.count(field, type, times);
}

bool normalizer::apply(std::string& text, bool opens, turn* at) const {
  bool keeps_start = true;
  if (sentence_) text = normalize(text, opens, *sentence_, at);
  for (const auto& step : steps_) {
    keeps_start = std::visit([&](const auto& s) { return apply_step(text, s, at); }, step) && keeps_start;
  }
  return keeps_start;
}

}  // namespace weir::core
