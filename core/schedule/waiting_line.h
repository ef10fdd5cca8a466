// waiting_line.h — the jobs that are not in the batch, in scheduling order: higher priority first, then
// preempted sequences, then by ticket (sequence::ticket), then by arrival.
//
// A job's ticket is the number of its arrival plus `ticket_step` for every job of the same API key that
// waits when it arrives. Keys therefore alternate, however many jobs one of them has. Of the jobs of its
// priority that arrive later, at most as many as were added to its ticket enter before it. A preempted
// sequence stands before all new jobs of its priority until it enters the batch again.
//
// Thread safety: the owner's thread only.
#pragma once

#include <algorithm>
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
    std::uint64_t ticket, arrival;
    bool operator<(const place& o) const {
      return std::tie(o.priority, o.preempted, ticket, arrival) <
             std::tie(priority, preempted, o.ticket, o.arrival);
    }
  };
  using places = std::map<place, std::unique_ptr<sequence>>;

 public:
  // Added to a job's ticket for each job of the same key that waits already, in arrivals.
  static constexpr std::uint64_t ticket_step = 64;

  bool empty() const noexcept { return line_.empty(); }
  std::size_t size() const noexcept { return line_.size(); }
  std::uint64_t arrivals() const noexcept { return arrivals_; }    // calls of add() so far
  std::uint64_t tokens() const noexcept { return tokens_; }        // sum of length() over the jobs that wait
  std::uint32_t preempted() const noexcept { return preempted_; }  // preempted sequences that wait

  // Adds a new job and gives it its number of arrival and its ticket.
  void add(std::unique_ptr<sequence> s) {
    s->arrival = arrivals_++;
    const auto key = keys_.find(s->asked.key);
    s->ticket = s->arrival + (key == keys_.end() ? 0 : key->second * ticket_step);
    insert(std::move(s));
  }

  // Adds a sequence that was preempted. It keeps its number of arrival and its ticket. Where memory is short,
  // it throws and leaves `s` as it is.
  void put_back(std::unique_ptr<sequence>&& s) { insert(std::move(s)); }

  // Adds a sequence of another line, which keeps its number of arrival and its ticket; later jobs get higher
  // numbers. Where memory is short, it throws and leaves `s` as it is.
  void adopt(std::unique_ptr<sequence>&& s) {
    const std::uint64_t arrival = s->arrival;
    insert(std::move(s));
    count_arrival(arrival);
  }
  // A sequence with this number of arrival is elsewhere in the scheduler.
  void count_arrival(std::uint64_t arrival) noexcept { arrivals_ = std::max(arrivals_, arrival + 1); }

  // Iteration in scheduling order.
  using position = places::iterator;
  position begin() noexcept { return line_.begin(); }
  position end() noexcept { return line_.end(); }
  // Removes the job at `at` and moves `at` to the next one.
  std::unique_ptr<sequence> take(position& at) {
    const auto gone = at++;
    return extract(gone);
  }
  // Removes the first job. REQUIRES: not empty.
  std::unique_ptr<sequence> take_front() { return extract(line_.begin()); }

  // Removes `s`; null if it does not wait here.
  std::unique_ptr<sequence> take(const sequence& s) {
    const auto it = line_.find(place_of(s));
    if (it == line_.end() || it->second.get() != &s) return nullptr;
    return extract(it);
  }

  // Calls f(const sequence&) for each job in scheduling order.
  template <class F>
  void each(F f) const {
    for (const auto& [place, s] : line_) f(*s);
  }

  // Calls f(sequence&) for each preempted sequence.
  template <class F>
  void each_preempted(F f) {
    if (preempted_ == 0) return;
    for (const auto& [place, s] : line_)
      if (is_preempted(*s)) f(*s);
  }

 private:
  static bool is_preempted(const sequence& s) { return s.phase() == sequence_phase::preempted; }
  static place place_of(const sequence& s) {
    return {s.asked.priority, is_preempted(s), s.ticket, s.arrival};
  }

  // Nothing is counted where memory is short and emplace() throws.
  void insert(std::unique_ptr<sequence>&& s) {
    std::uint64_t& of_key = keys_[s->asked.key];
    const sequence& added = *line_.emplace(place_of(*s), std::move(s)).first->second;
    ++of_key;
    tokens_ += added.length();
    preempted_ += is_preempted(added) ? 1 : 0;
  }

  std::unique_ptr<sequence> extract(position at) {
    auto s = std::move(line_.extract(at).mapped());
    if (const auto key = keys_.find(s->asked.key); --key->second == 0) keys_.erase(key);
    tokens_ -= s->length();
    preempted_ -= is_preempted(*s) ? 1 : 0;
    return s;
  }

  places line_;
  std::unordered_map<std::uint64_t, std::uint64_t> keys_;  // waiting jobs by key
  std::uint64_t arrivals_ = 0, tokens_ = 0;
  std::uint32_t preempted_ = 0;
};

}  // namespace weir::core
