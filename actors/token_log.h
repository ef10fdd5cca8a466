// token_log.h — the tokens of a job that its stream has received, and their text. Append-only.
//
// Positions count tokens. Once appended, neither a token nor its text changes.
//
// Thread safety: the stream's shard only.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/token.h"

namespace weir::actors {

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
    entries_.push_back({at_us, static_cast<std::uint32_t>(text_.size()), id});
    if (whole) whole_ = size();
  }
  // The output has ended: gives text that the caller appended since to the last token, and counts all tokens
  // as whole.
  void close() {
    if (!entries_.empty()) entries_.back().text_end = static_cast<std::uint32_t>(text_.size());
    whole_ = size();
  }

  // Text of the tokens `from` to `to` - 1. Valid until the text grows.
  std::string_view text_of(std::uint32_t from, std::uint32_t to) const {
    assert(from <= to && to <= size());
    const auto begin = from == 0 ? 0 : entries_[from - 1].text_end;
    const auto end = to == 0 ? 0 : entries_[to - 1].text_end;
    return std::string_view(text_).substr(begin, end - begin);
  }
  // The end of a piece that begins at `from`: as many tokens as have at most `most` bytes of text, but at
  // least one, so that a reader who takes piece after piece comes to whole(). REQUIRES: from <= whole().
  std::uint32_t piece_end(std::uint32_t from, std::size_t most) const {
    assert(from <= whole_);
    if (from == whole_) return whole_;
    const std::size_t begin = from == 0 ? 0 : entries_[from - 1].text_end;
    const auto first = entries_.begin() + from + 1;
    const auto end = std::upper_bound(first, entries_.begin() + whole_, begin + most,
                                      [](std::size_t bytes, const entry& e) { return bytes < e.text_end; });
    return static_cast<std::uint32_t>(end - entries_.begin());
  }
  // Bytes allocated, spare capacity included.
  std::uint64_t memory() const noexcept { return entries_.capacity() * sizeof(entry) + text_.capacity(); }

  // REQUIRES of both: i < size().
  core::token_id id(std::uint32_t i) const { return entries_[i].id; }
  std::int64_t at_us(std::uint32_t i) const { return entries_[i].at_us; }

 private:
  struct entry {
    std::int64_t at_us;
    std::uint32_t text_end;  // bytes of text up to the end of this token
    core::token_id id;
  };
  std::vector<entry> entries_;
  std::string text_;
  std::uint32_t whole_ = 0;
};

}  // namespace weir::actors
