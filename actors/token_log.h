// token_log.h — the tokens of a job that its stream has received, and their text. Append-only.
//
// Positions count tokens. Once appended, neither a token nor its text changes. The log of a job that asked
// for logprobs keeps the logprobs of each token, too. The log of a job with tools or separate reasoning has
// marks (core/text/answer/marks.h), which part its text.
//
// Thread safety: the stream's shard only.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/sample/logprobs.h"
#include "core/text/answer/marks.h"
#include "core/token.h"

namespace weir::actors {

// A piece of one part of an answer.
struct part_piece {
  core::part_kind kind = core::part_kind::text;
  std::uint32_t part = 0;  // number of the part in the answer
  std::uint32_t call = 0;  // number of the call, for kind call
  std::string_view text;   // may be empty where a part begins or ends
  bool begins = false;     // the first piece of its part
  bool ends = false;       // the last piece: reasoning has ended, or the call is whole
};

class token_log {
 public:
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(entries_.size()); }
  // Tokens up to the last one after which the text ends with a whole character.
  std::uint32_t whole() const noexcept { return whole_; }

  // The text of all tokens. The caller appends a token's text here before it calls append().
  std::string& text() noexcept { return text_; }
  // Appends a token. `at_us`: when it was sampled, in µs from the job's creation. `whole`: the text ends with
  // a whole character after it.
  void append(core::token_id id, std::int64_t at_us, bool whole) {
    entries_.push_back({at_us, static_cast<std::uint32_t>(text_.size()), whole, id});
    if (whole) whole_ = size();
    if (has_reasoning(size() - 1)) ++reasoning_tokens_;
  }
  // The caller appends a token's marks here before it calls append(), and those of the end before close().
  core::answer_marks& marks() noexcept { return marks_; }
  // The answer is taken apart: from now on its text has marks. REQUIRES: empty.
  void keep_marks() noexcept { parted_ = true; }
  bool is_parted() const noexcept { return parted_; }
  // Parts that have begun; nullopt: the answer is one text.
  std::optional<std::uint32_t> parts() const noexcept {
    if (!parted_) return std::nullopt;
    return marks_.list.empty() ? 0 : marks_.list.back().part + 1;
  }
  const core::answer_marks& marks() const noexcept { return marks_; }
  // Calls that were read to their end.
  std::uint32_t whole_calls() const noexcept {
    return static_cast<std::uint32_t>(std::ranges::count(marks_.calls, true, &core::answer_call::whole));
  }
  // Tokens of reasoning, with those of its marks.
  std::uint32_t reasoning_tokens() const noexcept { return reasoning_tokens_; }
  // Calls f(part_piece) for the parts of the tokens `from` to `to` - 1, in their order. REQUIRES: as
  // text_of().
  template <class F>
  void each_part(std::uint32_t from, std::uint32_t to, const F& f) const {
    std::size_t at = text_begin(from);
    auto mark = first_mark(from);
    part_piece now = standing_before(mark);
    const auto give = [&](std::size_t end) {
      now.text = std::string_view(text_).substr(at, end - at);
      if (!now.text.empty() || now.begins || now.ends) f(std::as_const(now));
      at = end;
    };
    for (; mark != marks_.list.end() && mark->token < to; ++mark) {
      now.ends = mark->what == core::answer_mark::kind::end;
      give(mark->offset);
      now = standing_after(*mark);
      now.begins = mark->what != core::answer_mark::kind::end;
    }
    give(text_begin(to));
  }
  // Whether a part begins or ends in the tokens `from` to `to` - 1.
  bool has_marks(std::uint32_t from, std::uint32_t to) const {
    const auto first = first_mark(from);
    return first != marks_.list.end() && first->token < to;
  }
  // The largest end, at most `to`, of a piece of tokens from `from` on that are all of one part; of the first
  // token alone, if that token is of several. REQUIRES: from < to.
  std::uint32_t part_end(std::uint32_t from, std::uint32_t to) const {
    bool begun = false;
    for (auto mark = first_mark(from); mark != marks_.list.end() && mark->token < to; ++mark) {
      if (mark->what == core::answer_mark::kind::end) {  // belongs to the part that it ends
        if (mark->offset == text_begin(mark->token + 1)) continue;
      } else if (mark->offset == text_begin(from) && !std::exchange(begun, true)) {
        continue;
      }
      return std::max(from + 1, mark->token);
    }
    return to;
  }

  // From now on append_logprobs() precedes each append(), with at most `top` likeliest tokens. REQUIRES:
  // empty.
  void keep_logprobs(std::uint32_t top) noexcept { logprobs_each_ = 1 + top; }
  bool has_logprobs() const noexcept { return logprobs_each_ > 0; }
  // Appends the logprobs of the token that is appended next.
  void append_logprobs(const core::draw_logprobs& l) {
    auto& chunk = next_chunk();
    chunk.push_back(l.drawn);
    for (std::uint32_t i = 0; i + 1 < logprobs_each_; ++i)
      chunk.push_back(i < l.count ? l.likeliest[i] : core::token_logprob());
  }
  // Entries that each token has in the log: its own, and those of the likeliest tokens. 0: no logprobs.
  std::uint32_t logprobs_each() const noexcept { return logprobs_each_; }
  // The entries of token `i`: its own, then those of the likeliest tokens, the best first; where there were
  // fewer, the rest has no id (-1). REQUIRES: has_logprobs(), i < size().
  std::span<const core::token_logprob> logprobs(std::uint32_t i) const {
    return std::span(chunks_[i / chunk_tokens])
        .subspan(std::size_t{i % chunk_tokens} * logprobs_each_, logprobs_each_);
  }

  // The output has ended: gives text that the caller appended since to the last token, and counts all tokens
  // as whole.
  void close() {
    if (!entries_.empty()) {
      entries_.back().text_end = static_cast<std::uint32_t>(text_.size());
      entries_.back().whole = true;
    }
    whole_ = size();
  }
  // The job has ended: nothing follows.
  void finish() noexcept { finished_ = true; }
  bool finished() const noexcept { return finished_; }
  // Appends the tokens `from` to `to` - 1 of another log, with their logprobs. REQUIRES:
  // from <= to <= log.size(); this log is empty or has as many logprobs for each token as `log`.
  void append_part(const token_log& log, std::uint32_t from, std::uint32_t to) {
    if (entries_.empty()) {
      logprobs_each_ = log.logprobs_each_;
      begins_as_ = log.standing_before(log.first_mark(from));
      parted_ = log.parted_;
    }
    assert(logprobs_each_ == log.logprobs_each_);
    const std::size_t shift = text_.size() - log.text_begin(from);
    text_ += log.text_of(from, to);
    for (std::uint32_t i = from; i < to; ++i) {
      if (has_logprobs()) {
        const auto of_token = log.logprobs(i);
        next_chunk().insert(next_chunk().end(), of_token.begin(), of_token.end());
      }
      entries_.push_back(log.entries_[i]);
      entries_.back().text_end = static_cast<std::uint32_t>(log.entries_[i].text_end + shift);
      if (entries_.back().whole) whole_ = size();
    }
    append_marks(log, from, to, shift);
  }

  // Text of the tokens `from` to `to` - 1. Valid until the text grows.
  std::string_view text_of(std::uint32_t from, std::uint32_t to) const {
    assert(from <= to && to <= size());
    const std::size_t begin = text_begin(from);
    return std::string_view(text_).substr(begin, text_begin(to) - begin);
  }
  // The end of a piece that begins at `from`: as many tokens as have at most `most` bytes of text, up to the
  // end of a character. A piece has at least one character, so that a reader who takes piece after piece
  // reaches whole(). REQUIRES: from <= whole().
  std::uint32_t piece_end(std::uint32_t from, std::size_t most) const {
    const auto last = entries_.begin() + whole_;
    const auto end = std::upper_bound(entries_.begin() + from, last, text_begin(from) + most,
                                      [](std::size_t bytes, const entry& e) { return bytes < e.text_end; });
    return whole_part(from, static_cast<std::uint32_t>(end - entries_.begin()));
  }
  // The end of a piece of whole characters among the tokens `from` to `to` - 1: `to`, or the end of the last
  // character before it. If that leaves no character: the end of the first one. REQUIRES: from <= whole().
  std::uint32_t whole_part(std::uint32_t from, std::uint32_t to) const {
    assert(from <= whole_);
    std::uint32_t end = std::min(to, whole_);
    while (end > from && !entries_[end - 1].whole) --end;
    if (end > from || from == whole_) return end;
    while (!entries_[end].whole) ++end;
    return end + 1;
  }
  // Bytes allocated, spare capacity included.
  std::uint64_t memory() const noexcept {
    const std::uint64_t first = chunks_.empty() ? 0 : chunks_.front().capacity();
    const std::uint64_t later = chunks_.empty() ? 0 : (chunks_.size() - 1) * chunk_tokens * logprobs_each_;
    return entries_.capacity() * sizeof(entry) + text_.capacity() + chunks_.capacity() * sizeof(chunk) +
           (first + later) * sizeof(core::token_logprob) +
           marks_.list.capacity() * sizeof(core::answer_mark) +
           marks_.calls.capacity() * (sizeof(core::answer_call) + usual_names);
  }

  // REQUIRES of both: i < size().
  core::token_id id(std::uint32_t i) const { return entries_[i].id; }
  std::int64_t at_us(std::uint32_t i) const { return entries_[i].at_us; }

 private:
  struct entry {
    std::int64_t at_us;
    std::uint32_t text_end : 31;  // bytes of text up to the end of this token
    std::uint32_t whole : 1;      // the text ends with a whole character there
    core::token_id id;
  };
  using chunk = std::vector<core::token_logprob>;  // [chunk_tokens, logprobs_each_]; the last has fewer
  static constexpr std::uint32_t chunk_tokens = 64;
  // The chunk of the token that is appended next. The first one grows, since most logs are short.
  chunk& next_chunk() {
    if (size() / chunk_tokens < chunks_.size()) return chunks_.back();
    chunks_.emplace_back();
    if (chunks_.size() > 1) chunks_.back().reserve(std::size_t{chunk_tokens} * logprobs_each_);
    return chunks_.back();
  }
  // Bytes of text before the token `i`.
  std::size_t text_begin(std::uint32_t i) const { return i == 0 ? 0 : entries_[i - 1].text_end; }

  using marks_at = std::vector<core::answer_mark>::const_iterator;
  // The first mark of token `i` or of a later one.
  marks_at first_mark(std::uint32_t i) const {
    return std::ranges::lower_bound(marks_.list, i, {}, &core::answer_mark::token);
  }
  static part_piece standing_after(const core::answer_mark& m) {
    part_piece p;
    p.part = m.part;
    p.call = m.call;
    if (m.what == core::answer_mark::kind::reasoning) p.kind = core::part_kind::reasoning;
    if (m.what == core::answer_mark::kind::call) p.kind = core::part_kind::call;
    return p;
  }
  // The part of the text in front of a mark.
  part_piece standing_before(marks_at mark) const {
    return mark == marks_.list.begin() ? begins_as_ : standing_after(*std::prev(mark));
  }
  // Whether token `i` has reasoning, or a mark of it.
  bool has_reasoning(std::uint32_t i) const {
    if (marks_.list.empty()) return false;
    const auto first = first_mark(i);
    return standing_before(first).kind == core::part_kind::reasoning ||
           std::any_of(first, marks_.list.end(),
                       [](const auto& m) { return m.what == core::answer_mark::kind::reasoning; });
  }
  // After append_part() has appended the tokens.
  void append_marks(const token_log& log, std::uint32_t from, std::uint32_t to, std::size_t shift) {
    const std::uint32_t before = size() - (to - from);
    for (auto m = log.first_mark(from); m != log.marks_.list.end() && m->token < to; ++m) {
      marks_.list.push_back(*m);
      marks_.list.back().token = m->token - from + before;
      marks_.list.back().offset = static_cast<std::uint32_t>(m->offset + shift);
    }
    marks_.calls = log.marks_.calls;
    marks_.warnings = log.marks_.warnings;
    reasoning_tokens_ = log.reasoning_tokens_;
  }
  static constexpr std::size_t usual_names = 64;  // bytes of a call's id and name

  std::vector<entry> entries_;
  std::string text_;
  core::answer_marks marks_;
  part_piece begins_as_;  // of a part of another log: in which part it begins
  bool parted_ = false;
  std::uint32_t reasoning_tokens_ = 0;
  std::uint32_t whole_ = 0;
  bool finished_ = false;
  std::uint32_t logprobs_each_ = 0;
  std::vector<chunk> chunks_;  // of logprobs, so that a long log is not copied when it grows
};

}  // namespace weir::actors
