#include "actors/constraint_store.h"

#include <new>

#include "core/insist.h"

namespace weir::actors {

using core::grammar::constraint;
using core::grammar::constraint_cache;
using core::grammar::fuel;
using core::grammar::terminal_views;
using core::grammar::token_trie;

constraint_store::constraint_store(std::shared_ptr<const core::tokenizer> words,
                                   std::vector<core::token_id> stop_ids,
                                   std::shared_ptr<const core::clock> time, core::duration most_time,
                                   std::shared_ptr<constraint_cache> kept)
    : words_(std::move(words)),
      stop_ids_(std::move(stop_ids)),
      time_(std::move(time)),
      most_time_(most_time),
      kept_(std::move(kept)),
      vocabulary_(fmt::format("{}", static_cast<const void*>(this))) {}

// The thread that holds the mutex compiles, so no other thread compiles, and the callback of ask() is never
// called.
core::result<compiled_constraint> constraint_store::get(const core::grammar::constraint_text& text,
                                                        const std::string& param,
                                                        const std::atomic<bool>* cancelled) {
  const auto key = core::grammar::key_of(text, vocabulary_);
  const std::lock_guard held(mutex_);
  auto claim = kept_->ask(key, time_->now(), [](const constraint_cache::answer&) {});
  if (claim.compile) {
    try {
      claim.known = compile(text, cancelled);
    } catch (const std::bad_alloc&) {  // settle() has to follow in any case
      core::insist([&] {
        claim.known = core::make_error(core::errc::overloaded, "there is no memory for this constraint now");
      });
    }
    core::insist([&] { kept_->settle(key, *claim.known, time_->now()); });
  }
  if (!claim.known->has_value()) {
    core::error e = claim.known->error();
    e.param.insert(0, param);
    return e;
  }
  constraint_cache::ready& found = **claim.known;
  compiled_constraint out{std::move(found.over), nullptr};
  if (!found.warnings.empty())
    out.warnings = std::make_shared<const constraint_warnings>(std::move(found.warnings));
  return out;
}

core::result<constraint_cache::ready> constraint_store::compile(const core::grammar::constraint_text& text,
                                                                const std::atomic<bool>* cancelled) {
  if (!views_) views_ = std::make_shared<terminal_views>(std::make_shared<const token_trie>(words_));
  fuel::limits most;
  most.cancelled = cancelled;
  if (most_time_ > core::duration::zero()) {
    most.time = time_.get();
    most.deadline = time_->now() + most_time_;
  }
  fuel budget(most);
  auto rules = core::grammar::compile(text, budget);
  if (!rules) return rules.error();
  auto warnings = std::move(rules->warnings);
  auto made = constraint::make(std::move(*rules), views_, stop_ids_, &budget);
  if (!made) return made.error();
  return constraint_cache::ready{std::move(*made), std::move(warnings)};
}

}  // namespace weir::actors
