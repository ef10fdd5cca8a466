#include "core/text/tokenizer/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

constexpr double unknown_penalty = 10;
constexpr std::size_t most_pieces = std::size_t{1} << 24;

scored_pieces read_pieces(const json_field& model) {
  scored_pieces out;
  const json_field list = model.at("vocab");
  const auto& items = list.array();
  if (items.empty() || items.size() > most_pieces) list.bad(fmt::format("has {} pieces", items.size()));
  out.all.reserve(items.size());
  for (const boost::json::value& item : items) {
    const auto* both = item.if_array();
    const auto wrong = [&] { list.bad(fmt::format("[{}] is not a piece and its score", out.all.size())); };
    if (both == nullptr || both->size() != 2 || !(*both)[0].is_string() || !(*both)[1].is_number()) wrong();
    const std::string_view text = (*both)[0].get_string();
    if (text.size() > most_piece_bytes)
      list.bad(fmt::format("[{}] has more than {} bytes", out.all.size(), most_piece_bytes));
    out.all.push_back({text, json_field((*both)[1], list.path()).number(), piece_kind::normal});
  }
  out.unknown = static_cast<token_id>(
      model.at("unk_id").integer(0, static_cast<std::int64_t>(items.size()) - 1));
  out.byte_fallback = model.boolean_or("byte_fallback", false);
  for (const char* sampling : {"alpha", "nbest_size"})
    if (const auto field = model.find(sampling)) field->refuse("sampling");
  return out;
}

vocabulary spellings(const scored_pieces& pieces) {
  std::vector<std::pair<std::string_view, token_id>> out;
  for (std::size_t id = 0; id < pieces.all.size(); ++id) {
    const scored_piece& p = pieces.all[id];
    const bool filler = p.kind == piece_kind::unused && p.text.empty();
    if (!filler) out.emplace_back(p.text, static_cast<token_id>(id));
  }
  return vocabulary(out);
}

std::vector<std::string_view> sorted(std::vector<std::string_view> texts) {
  std::ranges::sort(texts);
  return texts;
}

bool in_texts(piece_kind kind) { return kind == piece_kind::normal || kind == piece_kind::user_defined; }

}  // namespace

unigram::unigram(const json_field& model, const std::vector<std::string_view>& hidden)
    : unigram(read_pieces(model), sorted(hidden), true) {}

unigram::unigram(const scored_pieces& pieces) : unigram(pieces, {}, false) {}

// The unknown score lies below those of all pieces in tokenizer.json, and of the normal pieces in
// SentencePiece. `hidden`: sorted.
unigram::unigram(const scored_pieces& pieces, const std::vector<std::string_view>& hidden, bool from_json)
    : vocabulary_(spellings(pieces)),
      bytes_(vocabulary_),
      unknown_(*pieces.unknown),
      byte_fallback_(pieces.byte_fallback),
      single_precision_(!from_json) {
  double lowest = std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<float>::min();  // so it is in the library, above the usual scores
  std::vector<std::pair<std::string_view, std::int32_t>> found;
  for (const scored_piece& p : pieces.all) {
    const auto id = static_cast<std::int32_t>(scores_.size());
    scores_.push_back(p.score);
    if (p.kind == piece_kind::normal) {
      lowest = std::min(lowest, p.score);
      highest = std::max(highest, p.score);
    }
    if (p.kind == piece_kind::user_defined) {
      user_defined_.resize(pieces.all.size());
      user_defined_[static_cast<std::size_t>(id)] = true;
    }
    if (in_texts(p.kind) && !std::ranges::binary_search(hidden, p.text)) found.emplace_back(p.text, id);
  }
  trie_ = piece_trie(std::move(found));
  if (std::isinf(lowest)) lowest = std::numeric_limits<float>::max();  // no normal piece
  best_score_ = highest;
  unknown_score_ = lowest - unknown_penalty;
  unknown_score_ = rounded(unknown_score_);
}

double unigram::rounded(double score) const noexcept {
  return single_precision_ ? static_cast<float>(score) : score;
}

void unigram::offer(workspace::way& end, std::size_t begin, token_id id, double score) const {
  if (end.begin >= 0 && score <= end.score) return;
  end = {rounded(score), static_cast<std::int32_t>(begin), id};
}

void unigram::find_ways(std::string_view word, workspace& w, work_steps& all) const {
  w.ways.assign(word.size() + 1, {});
  for (std::size_t begin = 0; begin < word.size();) {
    const std::size_t character = character_size(word[begin]);
    const double so_far = w.ways[begin].score;
    bool has_piece = false;
    trie_.walk(word.substr(begin), [&](std::int32_t id, std::size_t length) {
      const auto i = static_cast<std::size_t>(id);
      all.add(length);
      double score = scores_[i];
      if (!user_defined_.empty() && user_defined_[i])
        score = static_cast<float>(length) * static_cast<float>(best_score_) - 0.1;
      offer(w.ways[begin + length], begin, id, score + so_far);
      has_piece = has_piece || length == character;
    });
    all.add();
    if (!has_piece) offer(w.ways[begin + character], begin, unknown_, rounded(unknown_score_ + so_far));
    begin += character;
  }
}

// Neighbouring unknown pieces are one.
void unigram::find_cuts(std::size_t size, workspace& w) const {
  w.cuts.clear();
  for (std::size_t end = size; end > 0;) {
    const workspace::way& last = w.ways[end];
    const auto begin = static_cast<std::uint32_t>(last.begin);
    if (last.id == unknown_ && !w.cuts.empty() && w.cuts.back().id == unknown_) {
      w.cuts.back().begin = begin;
    } else {
      w.cuts.push_back({begin, static_cast<std::uint32_t>(end), last.id});
    }
    end = begin;
  }
}

void unigram::append_unknown(std::string_view text, std::vector<token_id>& out) const {
  const bool spelled_so = text == vocabulary_.piece(unknown_);
  if (spelled_so || !byte_fallback_ || !bytes_.append(text, out)) out.push_back(unknown_);
}

void unigram::encode(std::string_view word, workspace& w, std::vector<token_id>& out, turn* at) const {
  work_steps all(at);
  find_ways(word, w, all);
  find_cuts(word.size(), w);
  for (auto cut = w.cuts.rbegin(); cut != w.cuts.rend(); ++cut) {
    all.add();
    if (cut->id == unknown_) {
      append_unknown(word.substr(cut->begin, cut->end - cut->begin), out);
    } else {
      out.push_back(cut->id);
    }
  }
}

}  // namespace weir::core
