#include "core/text/tokenizer/decoder.h"

#include <charconv>

#include "core/text/tokenizer/byte_level.h"
#include "core/text/tokenizer/metaspace.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

using reading = decoder::reading;

void apply_step(reading& r, const decoder::replace& s) { r.bytes = s.what.replace(r.bytes, s.by); }

void apply_step(reading& r, const decoder::byte_fallback&) {
  if (r.bytes.size() != 6 || !r.bytes.starts_with("<0x") || r.bytes.back() != '>') return;
  unsigned byte = 0;
  const auto [end, failed] = std::from_chars(r.bytes.data() + 3, r.bytes.data() + 5, byte, 16);
  if (failed != std::errc() || end != r.bytes.data() + 5) return;
  r.bytes.assign(1, static_cast<char>(byte));
  r.byte_piece = true;
}

void apply_step(reading& r, const decoder::byte_level&) {
  if (auto bytes = from_byte_level(r.bytes)) r.bytes = std::move(*bytes);
}

void apply_step(reading& r, const decoder::strip& s) {
  std::string_view text = r.bytes;
  for (std::size_t i = 0; i < s.start && text.starts_with(s.character); ++i)
    text.remove_prefix(s.character.size());
  for (std::size_t i = 0; i < s.stop && text.ends_with(s.character); ++i)
    text.remove_suffix(s.character.size());
  r.bytes = std::string(text);
}

std::string replace_all(std::string_view text, const std::string& what, std::string_view by) {
  return pattern(what).replace(text, by);
}

}  // namespace

decoder::decoder(const std::optional<json_field>& field) {
  if (field) {
    text_growth so_far("decoder");
    add(*field, so_far);
    return;
  }
  joins_with_spaces_ = true;
  stripped_.assign(1, ' ');
  strip_most_ = 1;
}

void decoder::add(const json_field& field, text_growth& so_far) {
  const std::string_view type = field.at("type").text();
  if (type == "Sequence") {
    for (const json_field& step : field.at("decoders").items()) add(step, so_far);
    return;
  }
  double times = 1;
  if (type == "Fuse") {
    fused_ = true;
  } else if (type == "Strip") {
    add_strip(field);
  } else if (fused_) {
    field.refuse(fmt::format("decoder '{}' over fused text", type));
  } else if (type == "Replace") {
    const replace r{pattern(field.at("pattern")), std::string(field.at("content").text())};
    times = r.what.growth_of(r.by);
    steps_.emplace_back(r);
  } else if (type == "ByteFallback") {
    steps_.emplace_back(byte_fallback{});
  } else if (type == "ByteLevel") {
    steps_.emplace_back(byte_level{});
    fused_ = true;
  } else if (type == "Metaspace") {
    const metaspace_rules rules(field);
    if (rules.prepend != metaspace_rules::scheme::never) first_loses_ = rules.replacement;
    steps_.emplace_back(replace{pattern(rules.replacement), " "});
  } else {
    field.refuse(fmt::format("decoder '{}'", type));
  }
  so_far.count(field, type, times);
}

void decoder::add_strip(const json_field& field) {
  constexpr std::int64_t most = 1 << 20;
  const std::string character(field.at("content").text());
  const auto start = static_cast<std::size_t>(field.at("start").integer(0, most));
  const auto stop = static_cast<std::size_t>(field.at("stop").integer(0, most));
  if (character.empty() || character_size(character[0]) != character.size()) {
    field.at("content").bad("must be one character");
  }
  if (!fused_) {
    steps_.emplace_back(strip{character, start, stop});
    return;
  }
  if (stop > 0) field.refuse("a strip at the end of fused text");
  if (!stripped_.empty() && stripped_ != character) field.refuse("a strip of several characters");
  stripped_ = character;
  strip_most_ += start;
}

decoder::reading decoder::read(std::string_view piece) const {
  reading r{std::string(piece), false};
  for (const auto& step : steps_) {
    std::visit([&](const auto& s) { apply_step(r, s); }, step);
  }
  if (joins_with_spaces_) r.bytes.insert(r.bytes.begin(), ' ');
  return r;
}

void decoder::finish(std::string& text, std::string_view first_piece) const {
  if (!first_loses_.empty()) {
    const std::string whole = read(first_piece).bytes;
    if (text.starts_with(whole)) text.replace(0, whole.size(), replace_all(first_piece, first_loses_, ""));
  }
  std::size_t cut = 0;
  for (std::size_t i = 0; i < strip_most_ && text.compare(cut, stripped_.size(), stripped_) == 0; ++i) {
    cut += stripped_.size();
  }
  text.erase(0, cut);
}

std::string clean_up_spaces(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> rules[] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [what, by] : rules) text = replace_all(text, std::string(what), by);
  return text;
}

}  // namespace weir::core
