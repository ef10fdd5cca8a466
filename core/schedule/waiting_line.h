// waiting_line.h — jobs that are not in the batch: higher priority first, then those that were in it before,
// then by turn.
//
// A job's turn is the number of its arrival, plus `turn_of_a_key` for every job of the same key that waits
// already: keys take turns, however many jobs one of them brings, and a job is overtaken by at most so many
// later arrivals. A preempted job had its turn: it stands before all others of its priority until it enters
// again.
//
// Thread safety: the owner's thread.
#pragma once

#include <cassert>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>

#include "core/schedule/sequence.h"

namespace weir::core {

class waiting_line {
  struct place {
    int priority;
    bool preempted;
    std::uint64_t turn, arrival;
    bool operator<(const place& o) const {
      return std::tie(o.priority, o.preempted, turn, arrival) <
             std::tie(priority, preempted, o.turn, o.arrival);
    }
  };
  using places = std::map<place, std::unique_ptr<sequence>>;

 public:
  static constexpr std::uint64_t turn_of_a_key = 64;

  bool empty() const noexcept { return line_.empty(); }
  std::size_t size() const noexcept { return line_.size(); }
  std::uint64_t arrivals() const noexcept { return arrivals_; }
  std::uint64_t tokens() const noexcept { return tokens_; }  // of all that wait, as far as they are known
  std::uint32_t preempted() const noexcept { return preempted_; }

  void add(std::unique_ptr<sequence> s) {
    s->arrival = arrivals_++;
    const auto key = keys_.find(s->asked.key);
    s->turn = s->arrival + (key == keys_.end() ? 0 : key->second * turn_of_a_key);
    insert(std::move(s));
  }

  // A sequence that was in the batch, and goes on when it has pages again.
  void add_preempted(std::unique_ptr<sequence> s) {
    assert(s->preempted);
    insert(std::move(s));
  }

  // In order. take(position) leaves the position at the next.
  using position = places::iterator;
  position begin() noexcept { return line_.begin(); }
  position end() noexcept { return line_.end(); }
  std::unique_ptr<sequence> take(position& at) {
    const auto gone = at++;
    return extract(gone);
  }
  std::unique_ptr<sequence> take_front() { return extract(line_.begin()); }

  // Nothing where `s` does not wait here.
  std::unique_ptr<sequence> take(const sequence& s) {
    const auto it = line_.find(place_of(s));
    if (it == line_.end() || it->second.get() != &s) return nullptr;
    return extract(it);
  }

  // In order: f(const sequence&).
  template <class F>
  void each(F f) const {
    for (const auto& [place, s] : line_) f(*s);
  }

  // f(sequence&) of the preempted ones alone.
  template <class F>
  void each_preempted(F f) {
    if (preempted_ == 0) return;
    for (const auto& [place, s] : line_)
      if (s->preempted) f(*s);
  }

 private:
  static place place_of(const sequence& s) { return {s.asked.priority, s.preempted, s.turn, s.arrival}; }

  void insert(std::unique_ptr<sequence> s) {
    ++keys_[s->asked.key];
    tokens_ += s->length();
    preempted_ += s->preempted ? 1 : 0;
    line_.emplace(place_of(*s), std::move(s));
  }

  std::unique_ptr<sequence> extract(position at) {
    auto s = std::move(line_.extract(at).mapped());
    if (const auto key = keys_.find(s->asked.key); --key->second == 0) keys_.erase(key);
    tokens_ -= s->length();
    preempted_ -= s->preempted ? 1 : 0;
    return s;
  }

  places line_;
  std::unordered_map<std::uint64_t, std::uint64_t> keys_;  // how many jobs of each wait
  std::uint64_t arrivals_ = 0, tokens_ = 0;
  std::uint32_t preempted_ = 0;
};

}  // namespace weir::core
