// token_log.h — a job's delivered tokens and their text, append-only.
//
// Used on the stream's shard. Positions count tokens: text_of(a, b) is the text of tokens (a, b], and once
// appended neither tokens nor text ever change.
#pragma once

#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/token_sink.h"

namespace weir::actors {

class token_log {
 public:
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(entries_.size()); }
  // Tokens up to here end with a whole character; what follows waits for its rest.
  std::uint32_t whole() const noexcept { return whole_; }

  // `text()` grows by what the token completed; `whole` says whether nothing is held back after it.
  std::string& text() noexcept { return text_; }
  void append(core::token_id id, std::int64_t at_us, bool whole) {
    entries_.push_back({at_us, static_cast<std::uint32_t>(text_.size()), id});
    if (whole) whole_ = size();
  }
  // The end of the output: text that was still held belongs to the last token.
  void close() {
    if (!entries_.empty()) entries_.back().text_end = static_cast<std::uint32_t>(text_.size());
    whole_ = size();
  }

  std::string_view text_of(std::uint32_t from, std::uint32_t to) const {
    assert(from <= to && to <= size());
    const auto begin = from == 0 ? 0 : entries_[from - 1].text_end;
    const auto end = to == 0 ? 0 : entries_[to - 1].text_end;
    return std::string_view(text_).substr(begin, end - begin);
  }
  // Bytes that it keeps for more tokens than it has, too.
  std::uint64_t memory() const noexcept { return entries_.capacity() * sizeof(entry) + text_.capacity(); }

  core::token_id id(std::uint32_t i) const { return entries_[i].id; }
  std::int64_t at_us(std::uint32_t i) const { return entries_[i].at_us; }

 private:
  struct entry {
    std::int64_t at_us;
    std::uint32_t text_end;  // bytes of text up to and including this token
    core::token_id id;
  };
  std::vector<entry> entries_;
  std::string text_;
  std::uint32_t whole_ = 0;
};

}  // namespace weir::actors
