#include "actors/constraint_store.h"

#include <new>
#include <optional>

#include "core/insist.h"

namespace weir::actors {

using core::grammar::constraint;
using core::grammar::constraint_cache;
using core::grammar::fuel;
using core::grammar::terminal_views;
using core::grammar::token_trie;

constraint_store::constraint_store(std::shared_ptr<const core::tokenizer> words,
                                   const core::token_set& stop_ids, std::shared_ptr<const core::clock> time,
                                   core::duration most_time, std::shared_ptr<constraint_cache> kept)
    : words_(std::move(words)),
      stop_ids_(stop_ids.begin(), stop_ids.end()),
      time_(std::move(time)),
      most_time_(most_time),
      kept_(std::move(kept)),
      vocabulary_(fmt::format("{}", static_cast<const void*>(this))) {}

namespace {

core::result<compiled_constraint> for_client(constraint_cache::answer what, const std::string& param) {
  if (!what) {
    core::error e = what.error();
    e.param.insert(0, param);
    return e;
  }
  compiled_constraint out{std::move(what->over), nullptr};
  if (!what->warnings.empty())
    out.warnings = std::make_shared<const constraint_warnings>(std::move(what->warnings));
  return out;
}

}  // namespace

// Once another caller has settled, the answer is known, or nobody compiles any more.
std::optional<core::result<compiled_constraint>> constraint_store::get(
    const core::grammar::constraint_text& text, const std::string& param, core::turn& at,
    std::function<void()> settled) {
  const auto key = core::grammar::key_of(text, vocabulary_);
  const auto claim = kept_->ask(
      key, time_->now(), [settled = std::move(settled)](const constraint_cache::answer&) { settled(); });
  if (claim.known) return for_client(*claim.known, param);
  if (claim.compile) return for_client(compile_and_keep(key, text, at), param);
  return std::nullopt;
}

std::optional<core::result<compiled_constraint>> constraint_store::known(
    const core::grammar::constraint_text& text, const std::string& param) {
  auto what = kept_->find(core::grammar::key_of(text, vocabulary_), time_->now());
  if (!what) return std::nullopt;
  return for_client(std::move(*what), param);
}

constraint_cache::answer constraint_store::compile_and_keep(const core::grammar::cache_key& key,
                                                            const core::grammar::constraint_text& text,
                                                            core::turn& at) {
  std::optional<constraint_cache::answer> made;
  bool no_memory = false;
  try {
    made = compile(text, at);
  } catch (const std::bad_alloc&) {  // settle() has to follow in any case
    no_memory = true;
    core::insist([&] { made = core::make_error(core::errc::unavailable, "no memory"); });  // is not kept
  }
  core::insist([&] { kept_->settle(key, *made, time_->now()); });
  if (no_memory)
    core::insist([&] {
      made = core::make_error(core::errc::overloaded, "there is no memory for this constraint now");
    });
  return std::move(*made);
}

std::shared_ptr<terminal_views> constraint_store::views() {
  const std::lock_guard held(mutex_);
  if (!views_) views_ = std::make_shared<terminal_views>(std::make_shared<const token_trie>(words_));
  return views_;
}

constraint_cache::answer constraint_store::compile(const core::grammar::constraint_text& text,
                                                   core::turn& at) {
  fuel::limits most{.at = &at};
  if (most_time_ > core::duration::zero()) most.deadline = at.now() + most_time_;
  fuel budget(most);
  auto rules = core::grammar::compile(text, budget, words_.get());
  if (!rules) return rules.error();
  auto warnings = std::move(rules->warnings);
  auto made = constraint::make(std::move(*rules), views(), stop_ids_, &budget);
  if (!made) return made.error();
  return constraint_cache::ready{std::move(*made), std::move(warnings)};
}

}  // namespace weir::actors
