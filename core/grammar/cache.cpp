#define XXH_INLINE_ALL
#include "core/grammar/cache.h"

#include <xxhash.h>

#include <string>

#include "core/grammar/calls.h"
#include "core/grammar/process_seed.h"

namespace weir::core::grammar {
namespace {

constexpr std::size_t entry_bytes = 256;  // of the map and the list

std::size_t bytes_of(const constraint_cache::answer& a) {
  if (!a) return entry_bytes + a.error().message.size() + a.error().param.size();
  std::size_t out = entry_bytes + a->over->bytes();
  for (const auto& w : a->warnings) out += sizeof w + w.where.size() + w.message.size();
  return out;
}

// Appends values so that two constraints have the same bytes only if they are equal.
class key_text {
 public:
  void add(std::string_view text) {
    add_number(text.size());
    all_ += text;
  }
  void add_number(std::uint64_t n) { all_.append(reinterpret_cast<const char*>(&n), sizeof n); }
  void add_constraint(const constraint_text& c) {
    add_number(static_cast<std::uint64_t>(c.what));
    add_number(static_cast<std::uint64_t>(c.space));
    add_number(c.strict);
    add(c.syntax);
    add(c.text);
    add_number(c.choices.size());
    for (const auto& choice : c.choices) add(choice);
    if (c.answer) add_answer(*c.answer);
  }
  const std::string& bytes() const { return all_; }

 private:
  void add_answer(const call_rules& a) {
    for (const std::string* s :
         {&a.format, &a.reasoning.open, &a.reasoning.close, &a.text_param, &a.budget_param})
      add(*s);
    add_number(static_cast<std::uint64_t>(a.messages));
    add_number(static_cast<std::uint64_t>(a.tools.how));
    add_number(a.tools.parallel);
    add_number(a.begins_in_reasoning);
    add_number(a.max_reasoning_tokens ? 1 + std::uint64_t{*a.max_reasoning_tokens} : 0);
    add_number(a.tools.tools.size());
    for (const tool_definition& t : a.tools.tools) {
      for (const std::string* s : {&t.name, &t.parameters, &t.grammar, &t.syntax, &t.param}) add(*s);
      add_number(static_cast<std::uint64_t>(t.what));
      add_number(t.strict);
      add_number(t.enforced);
    }
    add_number(a.text.has_value());
    if (a.text) add_constraint(*a.text);
  }

  std::string all_;
};

}  // namespace

cache_key key_of(const constraint_text& c, std::string_view vocabulary) {
  key_text all;
  all.add(vocabulary);
  all.add_constraint(c);
  const auto h = XXH3_128bits_withSeed(all.bytes().data(), all.bytes().size(), process_seed());
  return {h.low64, h.high64};
}

std::optional<constraint_cache::answer> constraint_cache::look_up(const cache_key& key, time_point now) {
  const auto at = known_.find(key);
  if (at == known_.end()) return std::nullopt;
  if (!at->second->what && at->second->until <= now) {
    drop(at->second);
    return std::nullopt;
  }
  entries_.splice(entries_.begin(), entries_, at->second);
  const answer& what = at->second->what;
  if (what || what.error().code != errc::overloaded) return what;
  error later = what.error();
  later.retry_after_ms = static_cast<std::uint32_t>(
      std::chrono::ceil<std::chrono::milliseconds>(at->second->until - now).count());
  return answer(std::move(later));
}

// A constraint that remembers too much is replaced, and what it holds now is measured.
constraint_cache::answer constraint_cache::renewed(const cache_key& key, answer known) {
  if (!known) return known;
  if (known->over->bytes() > options_.max_bytes_of_one) known->over = known->over->fresh();
  measure(key, *known);
  return known;
}

std::optional<constraint_cache::answer> constraint_cache::find(const cache_key& key, time_point now) {
  std::optional<answer> known;
  {
    const std::lock_guard lock(mutex_);
    known = look_up(key, now);
  }
  if (known) known = renewed(key, std::move(*known));
  return known;
}

constraint_cache::claim constraint_cache::ask(const cache_key& key, time_point now, waiter told) {
  std::optional<answer> known;
  {
    const std::lock_guard lock(mutex_);
    known = look_up(key, now);
    if (!known) {
      const auto [waiting, first] = pending_.try_emplace(key);
      if (!first) waiting->second.push_back(std::move(told));
      return {std::nullopt, first};
    }
  }
  return {renewed(key, std::move(*known)), false};
}

// Updates the entry of a constraint that has grown or was replaced.
void constraint_cache::measure(const cache_key& key, const ready& now_known) {
  answer what(now_known);
  const auto bytes = bytes_of(what);
  const std::lock_guard lock(mutex_);
  const auto at = known_.find(key);
  if (at == known_.end()) return;
  bytes_ += bytes - at->second->bytes;
  at->second->bytes = bytes;
  at->second->what = std::move(what);
  shrink();
}

void constraint_cache::settle(const cache_key& key, const answer& what, time_point now) {
  std::vector<waiter> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (what || lasts(what.error()) > duration::zero()) keep(key, what, now);
    if (const auto at = pending_.find(key); at != pending_.end()) {
      waiting = std::move(at->second);
      pending_.erase(at);
    }
  }
  for (const auto& told : waiting)
    if (told) told(what);
}

duration constraint_cache::lasts(const error& e) const {
  if (e.code == errc::overloaded) return options_.late;
  return e.code == errc::invalid_param || e.code == errc::not_supported ? options_.refusals
                                                                        : duration::zero();
}

void constraint_cache::keep(const cache_key& key, const answer& what, time_point now) {
  if (const auto old = known_.find(key); old != known_.end()) drop(old->second);
  std::list<entry> one;  // both allocations are made before the cache changes
  one.push_front({key, what, bytes_of(what), what ? time_point{} : now + lasts(what.error())});
  known_[key] = one.begin();
  entries_.splice(entries_.begin(), one);
  bytes_ += entries_.front().bytes;
  shrink();
}

void constraint_cache::drop(place at) {
  bytes_ -= at->bytes;
  known_.erase(at->key);
  entries_.erase(at);
}

void constraint_cache::shrink() {
  while (bytes_ > options_.max_bytes && !entries_.empty()) drop(std::prev(entries_.end()));
}

std::size_t constraint_cache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::size_t constraint_cache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace weir::core::grammar
