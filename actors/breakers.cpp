#include "actors/breakers.h"

#include <algorithm>
#include <string_view>

namespace weir::actors {
namespace {

using core::token_id;

constexpr std::size_t longest_tail = 20;  // tokens of a rest that are compared, as in llama.cpp

// Calls f(token, how many bytes of `text` it ends with) for each token that ends inside `text`.
template <class F>
void visit_heads(std::string_view text, std::string_view token, F&& f) {
  for (std::size_t n = std::min(text.size() - 1, token.size()); n > 0; --n)
    if (token.ends_with(text.substr(0, n))) f(n);
}

void add_text(std::string_view text, const core::tokenizer& t, std::uint32_t vocab_size,
              std::vector<token_id>& single, core::dry_breakers& out) {
  std::vector<std::vector<token_id>> heads(text.size());  // [bytes of the text that they end with]
  for (std::uint32_t i = 0; i < vocab_size; ++i) {
    const auto id = static_cast<token_id>(i);
    const std::string_view token = t.token_bytes(id);
    if (token.find(text) != token.npos)
      single.push_back(id);
    else
      visit_heads(text, token, [&](std::size_t n) { heads[n].push_back(id); });
  }
  for (std::size_t n = 1; n < text.size(); ++n) {
    if (heads[n].empty()) continue;
    auto tail = t.encode(text.substr(n), {.add_special = false, .parse_special = false});
    tail.resize(std::min(tail.size(), longest_tail));
    if (!tail.empty()) out.longer.push_back({core::token_set(std::move(heads[n])), std::move(tail)});
  }
}

}  // namespace

std::shared_ptr<const core::dry_breakers> breaker_store::find(const std::vector<std::string>& texts,
                                                              const core::tokenizer& t,
                                                              std::uint32_t vocab_size) {
  const auto of = [&](const kept& k) { return k.first == texts; };
  {
    const std::lock_guard lock(mutex_);
    if (const auto there = std::ranges::find_if(kept_, of); there != kept_.end()) {
      std::rotate(there, there + 1, kept_.end());
      return kept_.back().second;
    }
  }
  auto made = std::make_shared<core::dry_breakers>();
  std::vector<token_id> single;
  for (const std::string& text : texts) add_text(text, t, vocab_size, single, *made);
  made->single = core::token_set(std::move(single));
  made->texts = texts;
  const std::lock_guard lock(mutex_);
  if (kept_.size() == most_kept) kept_.erase(kept_.begin());
  kept_.emplace_back(texts, made);
  return made;
}

}  // namespace weir::actors
