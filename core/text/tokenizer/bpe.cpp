#include "core/text/tokenizer/bpe.h"

#include <algorithm>
#include <bit>

#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

// The tables by id have an entry for every id up to the largest one, so a file with a huge id is refused.
constexpr std::int64_t largest_id = (1 << 24) - 1;

vocabulary load_vocabulary(const json_field& field) {
  std::vector<std::pair<std::string_view, token_id>> pieces;
  pieces.reserve(field.object().size());
  for (const auto& [piece, id] : field.object()) {
    if (!id.is_int64() || id.get_int64() < 0 || id.get_int64() > largest_id) {
      field.bad(
          fmt::format("the id of '{}' must be an integer in [0, {}]", std::string_view(piece), largest_id));
    }
    pieces.emplace_back(piece, static_cast<token_id>(id.get_int64()));
  }
  return vocabulary(pieces);
}

// A merge is written "left right" or ["left", "right"]. Returns two empty strings for anything else.
std::pair<std::string_view, std::string_view> parse_merge(const boost::json::value& merge) {
  if (const auto* both = merge.if_array()) {
    if (both->size() != 2 || !(*both)[0].is_string() || !(*both)[1].is_string()) return {};
    return {(*both)[0].get_string(), (*both)[1].get_string()};
  }
  if (!merge.is_string()) return {};
  const std::string_view text = merge.get_string();
  const std::size_t space = text.find(' ');
  if (space == text.npos || text.find(' ', space + 1) != text.npos) return {};
  return {text.substr(0, space), text.substr(space + 1)};
}

}  // namespace

merge_table::merge_table(std::size_t merges) : slots_(std::bit_ceil(merges * 2 + 2)) {}

std::size_t merge_table::home(std::uint64_t pair) const noexcept {
  return (pair * 0x9E3779B97F4A7C15u >> 20) & (slots_.size() - 1);
}

void merge_table::add(token_id left, token_id right, merge m) {
  const std::uint64_t pair = static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  std::size_t at = home(pair);
  while (slots_[at].what.becomes >= 0 && slots_[at].pair != pair) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = {pair, m};
}

merge_table::merge merge_table::find(token_id left, token_id right) const noexcept {
  const std::uint64_t pair = static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  std::size_t at = home(pair);
  while (slots_[at].what.becomes >= 0 && slots_[at].pair != pair) at = (at + 1) & (slots_.size() - 1);
  return slots_[at].what;
}

bpe::bpe(const json_field& model)
    : vocabulary_(load_vocabulary(model.at("vocab"))),
      merges_(model.at("merges").array().size()),
      fuse_unknown_(model.boolean_or("fuse_unk", false)),
      byte_fallback_(model.boolean_or("byte_fallback", false)),
      ignore_merges_(model.boolean_or("ignore_merges", false)) {
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const auto field = model.find(affix); field && !field->text().empty()) field->refuse("an affix");
  }
  if (const auto dropout = model.find("dropout")) dropout->refuse("dropout");
  for (char32_t c = 0; c < short_characters_.size(); ++c) {
    std::string character;
    append_utf8(character, c);
    short_characters_[c] = vocabulary_.find(character).value_or(-1);
  }
  for (unsigned b = 0; b < 256; ++b) bytes_[b] = vocabulary_.find(fmt::format("<0x{:02X}>", b)).value_or(-1);
  load_unknown(model);
  load_merges(model);
}

void bpe::load_unknown(const json_field& model) {
  const auto field = model.find("unk_token");
  if (!field) return;
  unknown_ = vocabulary_.find(field->text());
  if (!unknown_) field->bad(fmt::format("'{}' is not in the vocabulary", field->text()));
}

void bpe::load_merges(const json_field& model) {
  const json_field field = model.at("merges");
  std::string joined;
  std::uint32_t rank = 0;
  for (const boost::json::value& line : field.array()) {
    const auto [left, right] = parse_merge(line);
    if (left.empty() || right.empty()) field.bad(fmt::format("[{}] is not a pair of pieces", rank));
    joined.assign(left).append(right);
    const auto l = vocabulary_.find(left), r = vocabulary_.find(right), both = vocabulary_.find(joined);
    if (!l || !r || !both) {
      field.bad(
          fmt::format("[{}]: '{}', '{}' or the two together are not in the vocabulary", rank, left, right));
    }
    merges_.add(*l, *r, {rank++, *both});
  }
}

std::optional<token_id> bpe::character_id(std::string_view character) const noexcept {
  if (character.size() > 2) return vocabulary_.find(character);
  std::string_view rest = character;
  const char32_t c = take_character(rest);
  if (c >= short_characters_.size()) return vocabulary_.find(character);
  return short_characters_[c] < 0 ? std::nullopt : std::optional(short_characters_[c]);
}

bool bpe::add_bytes(std::string_view character, workspace& w) const {
  const auto id = [&](char b) { return bytes_[static_cast<unsigned char>(b)]; };
  if (std::any_of(character.begin(), character.end(), [&](char b) { return id(b) < 0; })) return false;
  for (const char b : character) w.symbols.push_back({id(b), 0, 0});
  return true;
}

// A character without a piece becomes the pieces of its bytes, or the unknown token, or nothing. Where the
// model fuses unknown tokens, neighbouring unknown characters share one. The unknown token is added before
// the next character that has a piece, before the next unknown character if they are not fused, or at the
// end. Byte pieces in between come first.
void bpe::split(std::string_view word, workspace& w, work_steps& all) const {
  bool unknown_waits = false;
  const auto write_unknown = [&] {
    if (unknown_waits) w.symbols.push_back({*unknown_, 0, 0});
    unknown_waits = false;
  };
  for (std::size_t at = 0; at < word.size();) {
    all.add();
    const std::string_view character = word.substr(at, character_size(word[at]));
    at += character.size();
    if (const auto id = character_id(character)) {
      write_unknown();
      w.symbols.push_back({*id, 0, 0});
      continue;
    }
    if ((byte_fallback_ && add_bytes(character, w)) || !unknown_) continue;
    if (!fuse_unknown_) write_unknown();
    unknown_waits = true;
  }
  write_unknown();
}

void bpe::offer(workspace& w, std::int32_t left, std::int32_t right) const {
  const auto m = merges_.find(w.symbols[left].id, w.symbols[right].id);
  if (m.becomes < 0) return;
  w.heap.push_back({m.rank, left, m.becomes});
}

void bpe::merge(workspace& w, work_steps& all) const {
  const auto later = [](const auto& a, const auto& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  };
  const auto offer_and_sift = [&](std::int32_t left, std::int32_t right) {
    const std::size_t before = w.heap.size();
    offer(w, left, right);
    if (w.heap.size() > before) std::push_heap(w.heap.begin(), w.heap.end(), later);
  };
  auto& symbols = w.symbols;
  std::make_heap(w.heap.begin(), w.heap.end(), later);
  all.add(w.heap.size());
  while (!w.heap.empty()) {
    all.add(4);
    std::pop_heap(w.heap.begin(), w.heap.end(), later);
    const auto best = w.heap.back();
    w.heap.pop_back();
    auto& left = symbols[best.at];
    if (left.next < 0 || left.next == best.at) continue;  // the last symbol, or merged away
    auto& right = symbols[left.next];
    if (merges_.find(left.id, right.id).becomes != best.becomes) continue;  // one of the two has changed
    const std::int32_t gone = left.next;
    left.id = best.becomes;
    left.next = right.next;
    right.next = gone;
    if (left.next >= 0) symbols[left.next].previous = best.at;
    if (left.previous >= 0) offer_and_sift(left.previous, best.at);
    if (left.next >= 0) offer_and_sift(best.at, left.next);
  }
}

void bpe::encode(std::string_view word, workspace& w, std::vector<token_id>& out, turn* at) const {
  if (ignore_merges_) {
    if (const auto whole = vocabulary_.find(word)) return out.push_back(*whole);
  }
  w.symbols.clear();
  w.heap.clear();
  work_steps all(at);
  split(word, w, all);
  const auto n = static_cast<std::int32_t>(w.symbols.size());
  for (std::int32_t i = 0; i < n; ++i) {
    w.symbols[i].previous = i - 1;
    w.symbols[i].next = i + 1 < n ? i + 1 : -1;
  }
  for (std::int32_t i = 0; i + 1 < n; ++i) {
    all.add();
    offer(w, i, i + 1);
  }
  merge(w, all);
  for (std::int32_t i = 0; i >= 0 && i < n; i = w.symbols[i].next) out.push_back(w.symbols[i].id);
}

}  // namespace weir::core
