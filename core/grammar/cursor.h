// cursor.h — the place of one job's text in its constraint.
//
// Costs 4 bytes a token. A copy is a fork.
//
// Thread safety: one thread a cursor; cursors of one constraint in any threads.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/grammar/constraint.h"

namespace weir::core::grammar {

class cursor {
 public:
  explicit cursor(std::shared_ptr<constraint> c) : constraint_(std::move(c)), trail_{constraint_->start()} {}

  // Reserves memory for a text of `tokens` tokens.
  void reserve(std::size_t tokens) { trail_.reserve(tokens + 1); }

  // False: the token is not allowed, or the constraint has failed (see failed()); the cursor does not move.
  bool accept(token_id token) {
    const auto to = constraint_->accept(at(), token);
    if (to == constraint::failed) failed_ = true;
    if (to <= constraint::failed) return false;
    trail_.push_back(to);
    return true;
  }

  // Accepts a token whose parse the caller has already: `to` is what constraint::accept_known() returned.
  void go(parse_id to) { trail_.push_back(to); }

  // Takes back the last n tokens. REQUIRES: n <= tokens().
  void rewind(std::size_t n) {
    assert(n < trail_.size());
    trail_.resize(trail_.size() - n);
    failed_ = false;
  }

  // Changes to another constraint of the same rules and vocabulary, such as constraint::fresh() makes.
  // `written`: all tokens that this cursor has accepted. False: `to` does not allow these tokens, or has
  // failed; the cursor is unchanged.
  bool move_to(std::shared_ptr<constraint> to, std::span<const token_id> written) {
    assert(written.size() == tokens());
    std::vector<parse_id> trail{to->start()};
    for (const auto token : written) {
      trail.push_back(to->accept(trail.back(), token));
      if (trail.back() <= constraint::failed) return false;
    }
    constraint_ = std::move(to);
    trail_ = std::move(trail);
    failed_ = false;
    return true;
  }

  std::size_t tokens() const { return trail_.size() - 1; }
  bool may_end() const { return constraint_->may_end(at()); }
  bool must_end() const { return constraint_->must_end(at()); }
  // The tokens that may come, without ending ones; lives as long as the constraint. nullptr: as
  // constraint::mask(). Safe in any thread while the cursor does not move.
  const token_mask* mask() const { return constraint_->mask(at()); }

  // The constraint is too ambiguous, or has too many states: over().failure() says which.
  bool failed() const { return failed_; }
  parse_id at() const { return trail_.back(); }
  constraint& over() const { return *constraint_; }

 private:
  std::shared_ptr<constraint> constraint_;
  std::vector<parse_id> trail_;  // trail_[n]: after n tokens
  bool failed_ = false;
};

}  // namespace weir::core::grammar
