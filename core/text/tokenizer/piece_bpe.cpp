#include "core/text/tokenizer/piece_bpe.h"

#include <algorithm>

#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

vocabulary spellings(const scored_pieces& pieces) {
  std::vector<std::pair<std::string_view, token_id>> out;
  for (std::size_t id = 0; id < pieces.all.size(); ++id)
    if (!pieces.all[id].text.empty()) out.emplace_back(pieces.all[id].text, static_cast<token_id>(id));
  return vocabulary(out);
}

bool joins(piece_kind kind) {
  return kind == piece_kind::normal || kind == piece_kind::user_defined || kind == piece_kind::unused;
}

}  // namespace

piece_bpe::piece_bpe(const scored_pieces& pieces, bool whole_words)
    : vocabulary_(spellings(pieces)),
      entries_(pieces.all.size()),
      bytes_(vocabulary_),
      unknown_(pieces.unknown),
      byte_fallback_(pieces.byte_fallback),
      whole_words_(whole_words) {
  std::vector<std::size_t> joined;
  std::vector<std::pair<std::string_view, std::int32_t>> fixed;
  for (std::size_t id = 0; id < pieces.all.size(); ++id) {
    const scored_piece& p = pieces.all[id];
    const bool unused = p.kind == piece_kind::unused;
    if (!joins(p.kind) || p.text.empty()) continue;
    joined.push_back(id);
    longest_ = std::max(longest_, p.text.size());
    entries_[id].unused = unused;
    has_unused_ = has_unused_ || unused;
    if (p.kind == piece_kind::user_defined) fixed.emplace_back(p.text, static_cast<std::int32_t>(id));
  }
  user_defined_ = piece_trie(std::move(fixed));
  const auto score = [&](std::size_t id) { return pieces.all[id].score; };
  std::ranges::stable_sort(joined, std::ranges::greater{}, score);
  std::uint32_t order = 0;
  for (std::size_t i = 0; i < joined.size(); ++i) {
    if (i > 0 && score(joined[i]) != score(joined[i - 1])) ++order;
    entries_[joined[i]].order = order;
  }
}

std::optional<token_id> piece_bpe::find(std::string_view text) const noexcept {
  if (text.size() > longest_) return std::nullopt;
  const auto id = vocabulary_.find(text);
  return id && entries_[static_cast<std::size_t>(*id)].order != not_joined ? id : std::nullopt;
}

void piece_bpe::split(std::string_view word, workspace& w, work_steps& all) const {
  for (std::size_t at = 0; at < word.size();) {
    all.add();
    const std::size_t fixed = user_defined_.longest_at(word.substr(at));
    const std::size_t size = fixed > 0 ? fixed : character_size(word[at]);
    const auto i = static_cast<std::int32_t>(w.symbols.size());
    at += size;
    w.symbols.push_back({static_cast<std::uint32_t>(at - size), static_cast<std::uint32_t>(size), i - 1,
                         at < word.size() ? i + 1 : -1, fixed > 0});
  }
}

void piece_bpe::offer(std::string_view word, std::int32_t left, std::int32_t right, workspace& w,
                      work_steps& all) const {
  const workspace::symbol &l = w.symbols[left], &r = w.symbols[right];
  const std::uint32_t size = l.size + r.size;
  if (l.frozen || r.frozen || size > longest_) return;
  all.add(1 + size / 16);
  const std::string_view both = word.substr(l.begin, size);
  const auto id = find(both);
  if (!id) return;
  const entry& e = entries_[static_cast<std::size_t>(*id)];
  w.heap.push_back({e.order, left, size});
  if (e.unused) w.cuts[both] = l.size;
}

void piece_bpe::join(std::string_view word, workspace& w, work_steps& all) const {
  const auto later = [](const auto& a, const auto& b) {
    return a.order != b.order ? a.order > b.order : a.at > b.at;
  };
  const auto offer_and_sift = [&](std::int32_t left, std::int32_t right) {
    const std::size_t before = w.heap.size();
    offer(word, left, right, w, all);
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
    if (left.size == 0 || left.next < 0) continue;
    auto& right = symbols[left.next];
    if (left.size + right.size != best.size) continue;  // one of the two has grown
    left.size = best.size;
    left.next = right.next;
    right.size = 0;
    if (left.next >= 0) symbols[left.next].previous = best.at;
    if (left.previous >= 0) offer_and_sift(left.previous, best.at);
    if (left.next >= 0) offer_and_sift(best.at, left.next);
  }
}

// Neighbouring parts that are unknown share one unknown token.
void piece_bpe::append(std::string_view part, workspace& w, std::vector<token_id>& out,
                       bool& after_unknown) const {
  w.parts.assign(1, part);
  while (!w.parts.empty()) {
    const std::string_view text = w.parts.back();
    w.parts.pop_back();
    const auto id = find(text);
    if (id && entries_[static_cast<std::size_t>(*id)].unused) {
      if (const auto cut = w.cuts.find(text); cut != w.cuts.end()) {
        w.parts.push_back(text.substr(cut->second));
        w.parts.push_back(text.substr(0, cut->second));
        continue;
      }
    }
    if (id) out.push_back(*id);
    const bool unknown = !id && !(byte_fallback_ && bytes_.append(text, out));
    if (unknown && unknown_ && !after_unknown) out.push_back(*unknown_);
    after_unknown = unknown;
  }
}

void piece_bpe::encode(std::string_view word, workspace& w, std::vector<token_id>& out, turn* at) const {
  if (whole_words_) {
    if (const auto whole = find(word)) return out.push_back(*whole);
  }
  w.symbols.clear();
  w.heap.clear();
  if (has_unused_) w.cuts.clear();
  work_steps all(at);
  split(word, w, all);
  const auto n = static_cast<std::int32_t>(w.symbols.size());
  for (std::int32_t i = 0; i + 1 < n; ++i) {
    all.add();
    offer(word, i, i + 1, w, all);
  }
  join(word, w, all);
  bool after_unknown = false;
  for (std::int32_t i = 0; i >= 0 && i < n; i = w.symbols[i].next)
    append(word.substr(w.symbols[i].begin, w.symbols[i].size), w, out, after_unknown);
}

}  // namespace weir::core
