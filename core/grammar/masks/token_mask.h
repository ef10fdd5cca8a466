// token_mask.h — which tokens may come.
//
// A mask has one of three forms: a list of ids, if they are few; one bit for each token of the vocabulary; or
// another mask, which several masks may share, and a list of more ids. A mask is filled with set() and
// set_all(), then finish()ed.
//
// Thread safety: plain data; a finished mask in any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/token.h"

namespace weir::core::grammar {

class token_mask {
 public:
  static constexpr std::size_t most_listed = 512;  // ids in the list of a finished mask

  explicit token_mask(std::uint32_t vocab_size = 0) : vocab_size_(vocab_size) {}

  void set(token_id id) {
    if (!words_.empty()) {
      mark(id);
      return;
    }
    if (base_ && base_->has(id)) return;
    ids_.push_back(id);
    if (ids_.size() > 2 * most_listed) to_words();
  }
  void set(std::span<const token_id> ids) {
    for (const auto id : ids) set(id);
  }
  // Sets all tokens of a finished mask. May keep a reference to that mask and share its bits.
  void set_all(std::shared_ptr<const token_mask> of) {
    if (of->listed()) {
      set(of->ids_);
    } else if (words_.empty() && !base_ && !of->base_) {
      base_ = std::move(of);
      std::erase_if(ids_, [&](token_id id) { return base_->has(id); });
    } else if (base_ != of) {
      if (words_.empty()) to_words();
      of->mark_all(words_);
    }
  }
  // REQUIRES: the mask is finished and shares no other mask. After the last unset(), finish() is due again.
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
      count_ = static_cast<std::uint32_t>(ids_.size()) + (base_ ? base_->count_ : 0);
      if (ids_.size() > most_listed) to_words();
      return;
    }
    count_ = 0;
    for (const auto w : words_) count_ += bits(w);
  }

  std::uint32_t count() const { return count_; }
  bool has(token_id id) const {
    const auto i = static_cast<std::uint32_t>(id);
    if (!words_.empty()) return i < vocab_size_ && (words_[i / 32] >> (i % 32) & 1) != 0;
    return (base_ && base_->has(id)) || std::binary_search(ids_.begin(), ids_.end(), id);
  }
  // The mask is a list of ids and nothing else.
  bool listed() const { return words_.empty() && !base_; }
  std::vector<token_id> ids() const {
    if (listed()) return ids_;
    std::vector<std::uint32_t> row((vocab_size_ + 31) / 32);
    write(row);
    std::vector<token_id> out;
    for (std::uint32_t w = 0; w < row.size(); ++w)
      for (auto bits = row[w]; bits != 0; bits &= bits - 1)
        out.push_back(static_cast<token_id>(w * 32 + static_cast<std::uint32_t>(__builtin_ctz(bits))));
    return out;
  }
  // Writes one bit a token, bit i % 32 of word i / 32. REQUIRES: `row` has a word for each 32 tokens.
  void write(std::span<std::uint32_t> row) const {
    const auto& dense = base_ ? base_->words_ : words_;
    const auto rest = std::copy(dense.begin(), dense.end(), row.begin());
    std::fill(rest, row.end(), 0);
    mark(row, ids_);
  }
  // The mask that this one shares; nullptr: none.
  const token_mask* shared() const { return base_.get(); }
  // Bytes of this mask, without those of the mask that it shares.
  std::size_t bytes() const { return sizeof *this + 4 * (words_.capacity() + ids_.capacity()); }

  std::uint64_t cost = 0;  // tree nodes and heads that were looked at to make it

 private:
  static std::uint32_t bits(std::uint32_t w) {
    w -= w >> 1 & 0x5555'5555;
    w = (w & 0x3333'3333) + (w >> 2 & 0x3333'3333);
    return (((w + (w >> 4)) & 0x0F0F'0F0F) * 0x0101'0101) >> 24;
  }
  static void mark(std::span<std::uint32_t> words, std::span<const token_id> ids) {
    for (const auto id : ids)
      words[static_cast<std::uint32_t>(id) / 32] |= 1u << (static_cast<std::uint32_t>(id) % 32);
  }
  void mark(token_id id) { mark(words_, {&id, 1}); }
  // REQUIRES: not listed().
  void mark_all(std::span<std::uint32_t> words) const {
    const auto& dense = base_ ? base_->words_ : words_;
    for (std::size_t i = 0; i < dense.size(); ++i) words[i] |= dense[i];
    mark(words, ids_);
  }
  void to_words() {
    std::vector<std::uint32_t> words((vocab_size_ + 31) / 32);
    write(words);
    words_ = std::move(words);
    ids_ = {};
    base_ = nullptr;
  }

  std::uint32_t vocab_size_;
  std::uint32_t count_ = 0;
  std::shared_ptr<const token_mask> base_;  // has words_; if it is set, words_ here is empty
  std::vector<std::uint32_t> words_;
  std::vector<token_id> ids_;
};

}  // namespace weir::core::grammar
