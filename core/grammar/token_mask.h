// token_mask.h — which tokens may come.
//
// Few tokens are a list of ids; more are one bit a token. A mask is filled with set(), then finish()ed.
//
// Thread safety: plain data; a finished mask in any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/token.h"

namespace weir::core::grammar {

class token_mask {
 public:
  static constexpr std::size_t most_listed = 512;

  explicit token_mask(std::uint32_t vocab_size = 0) : vocab_size_(vocab_size) {}

  void set(token_id id) {
    if (!words_.empty()) {
      mark(id);
      return;
    }
    ids_.push_back(id);
    if (ids_.size() > 2 * most_listed) to_words();
  }
  void set(std::span<const token_id> ids) {
    for (const auto id : ids) set(id);
  }
  // `words`: as words() has them.
  void set_words(std::span<const std::uint32_t> words) {
    if (words_.empty()) to_words();
    for (std::size_t i = 0; i < words.size(); ++i) words_[i] |= words[i];
  }
  // REQUIRES: finished; finish() again behind the last.
  void unset(std::span<const token_id> ids) {
    for (const auto id : ids) {
      const auto i = static_cast<std::uint32_t>(id);
      if (!words_.empty())
        words_[i / 32] &= ~(1u << (i % 32));
      else if (const auto at = std::lower_bound(ids_.begin(), ids_.end(), id); at != ids_.end() && *at == id)
        ids_.erase(at);
    }
  }
  void finish() {
    if (words_.empty()) {
      std::sort(ids_.begin(), ids_.end());
      ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
      count_ = static_cast<std::uint32_t>(ids_.size());
      if (count_ > most_listed) to_words();
      return;
    }
    count_ = 0;
    for (const auto w : words_) count_ += bits(w);
  }

  std::uint32_t count() const { return count_; }
  bool has(token_id id) const {
    if (words_.empty()) return std::binary_search(ids_.begin(), ids_.end(), id);
    const auto i = static_cast<std::uint32_t>(id);
    return i < vocab_size_ && (words_[i / 32] >> (i % 32) & 1) != 0;
  }
  bool listed() const { return words_.empty(); }
  std::span<const token_id> listed_ids() const { return ids_; }    // REQUIRES: listed()
  std::span<const std::uint32_t> words() const { return words_; }  // REQUIRES: !listed()
  std::vector<token_id> ids() const {
    if (listed()) return ids_;
    std::vector<token_id> out;
    for (std::uint32_t w = 0; w < words_.size(); ++w)
      for (auto bits = words_[w]; bits != 0; bits &= bits - 1)
        out.push_back(static_cast<token_id>(w * 32 + static_cast<std::uint32_t>(__builtin_ctz(bits))));
    return out;
  }
  // Writes one bit a token, bit i % 32 of word i / 32. REQUIRES: `row` has a word for each 32 tokens.
  void write(std::span<std::uint32_t> row) const {
    std::fill(row.begin(), row.end(), 0);
    if (!listed())
      std::copy(words_.begin(), words_.end(), row.begin());
    else
      for (const auto id : ids_)
        row[static_cast<std::uint32_t>(id) / 32] |= 1u << (static_cast<std::uint32_t>(id) % 32);
  }
  std::size_t bytes() const { return sizeof *this + 4 * (words_.capacity() + ids_.capacity()); }

  std::uint64_t cost = 0;  // tree nodes and heads that were looked at to make it

 private:
  static std::uint32_t bits(std::uint32_t w) {
    w -= w >> 1 & 0x5555'5555;
    w = (w & 0x3333'3333) + (w >> 2 & 0x3333'3333);
    return (((w + (w >> 4)) & 0x0F0F'0F0F) * 0x0101'0101) >> 24;
  }
  void mark(token_id id) {
    const auto i = static_cast<std::uint32_t>(id);
    words_[i / 32] |= 1u << (i % 32);
  }
  void to_words() {
    words_.assign((vocab_size_ + 31) / 32, 0);
    for (const auto id : ids_) mark(id);
    ids_ = {};
  }

  std::uint32_t vocab_size_;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> words_;
  std::vector<token_id> ids_;
};

}  // namespace weir::core::grammar
