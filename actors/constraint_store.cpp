#include "actors/constraint_store.h"

namespace weir::actors {

using core::grammar::constraint;
using core::grammar::terminal_views;
using core::grammar::token_trie;

constraint_store::constraint_store(std::shared_ptr<const core::tokenizer> words,
                                   std::vector<core::token_id> stop_ids,
                                   std::shared_ptr<const core::clock> time)
    : words_(std::move(words)), stop_ids_(std::move(stop_ids)), time_(std::move(time)) {}

core::result<compiled_constraint> constraint_store::get(const core::grammar::constraint_text& text,
                                                        const std::string& param,
                                                        const std::atomic<bool>*) {
  const auto named = [&](core::error e) {
    e.param.insert(0, param);
    return e;
  };
  const std::lock_guard held(mutex_);
  if (!views_) views_ = std::make_shared<terminal_views>(std::make_shared<const token_trie>(words_));
  auto rules = core::grammar::compile(text);
  if (!rules) return named(rules.error());
  compiled_constraint out;
  if (!rules->warnings.empty())
    out.warnings = std::make_shared<const constraint_warnings>(std::move(rules->warnings));
  auto made = constraint::make(std::move(*rules), views_, stop_ids_);
  if (!made) return named(made.error());
  out.rules = std::move(*made);
  return out;
}

}  // namespace weir::actors
