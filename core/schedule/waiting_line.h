// waiting_line.h — jobs that are not in the batch yet: higher priority first, then in order of arrival.
//
// Thread safety: the owner's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "core/schedule/sequence.h"

namespace weir::core {

class waiting_line {
 public:
  bool empty() const noexcept { return line_.empty(); }
  std::size_t size() const noexcept { return line_.size(); }

  void add(std::unique_ptr<sequence> s) {
    s->arrival = arrivals_++;
    line_.emplace(place_of(*s), std::move(s));
  }

  sequence& front() { return *line_.begin()->second; }
  std::unique_ptr<sequence> take_front() { return std::move(line_.extract(line_.begin()).mapped()); }

  // Nothing where `s` does not wait here.
  std::unique_ptr<sequence> take(const sequence& s) {
    const auto it = line_.find(place_of(s));
    if (it == line_.end() || it->second.get() != &s) return nullptr;
    return std::move(line_.extract(it).mapped());
  }

  // In order: f(const sequence&).
  template <class F>
  void each(F f) const {
    for (const auto& [place, s] : line_) f(*s);
  }

 private:
  struct place {
    int priority;
    std::uint64_t arrival;
    bool operator<(const place& o) const {
      return std::tie(o.priority, arrival) < std::tie(priority, o.arrival);
    }
  };
  static place place_of(const sequence& s) { return {s.asked.priority, s.arrival}; }

  std::map<place, std::unique_ptr<sequence>> line_;
  std::uint64_t arrivals_ = 0;
};

}  // namespace weir::core
