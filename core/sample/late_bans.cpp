#include "core/sample/late_bans.h"

#include <algorithm>

namespace weir::core {

bool has_late_bans(const sampling_params& p) { return p.no_repeat_ngram_size > 0 || !p.bad_words.empty(); }

std::uint64_t late_bans::bytes_for(const sampling_params& p, std::uint32_t most,
                                   std::uint32_t vocab_size) noexcept {
  const std::uint64_t now = (most + p.bad_words.size()) * sizeof(token_id);
  return now + (p.no_repeat_ngram_size > 0 ? suffix_matches::bytes_for(most, vocab_size) : 0);
}

late_bans::late_bans(const sampling_params& p, const token_history& of, std::uint32_t most,
                     std::uint32_t vocab_size)
    : ngram_(p.no_repeat_ngram_size), bad_words_(p.bad_words) {
  if (ngram_ > 0) matches_.emplace(of, most, vocab_size, most);
  now_.reserve(most + bad_words_.size());
  update(of);
}

void late_bans::add(const token_history& of) {
  if (matches_) matches_->add(of);
  update(of);
}

void late_bans::update(const token_history& of) {
  now_.clear();
  if (matches_)
    for (const auto& m : matches_->all())
      if (m.length + 1 >= ngram_) now_.push_back(of[m.place + 1]);
  for (std::size_t at = 0; at < bad_words_.size();) {
    const auto size = static_cast<std::size_t>(bad_words_[at]);
    const std::span word(bad_words_.data() + at + 1, size);
    if (of.ends_with(word.first(size - 1))) now_.push_back(word.back());
    at += 1 + size;
  }
  std::ranges::sort(now_);
  const auto same = std::ranges::unique(now_);
  now_.erase(same.begin(), same.end());
}

}  // namespace weir::core
