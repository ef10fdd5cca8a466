// dependents.h — the children and the timers of an actor, which end when its body ends.
//
// Thread safety: the actor's executor only.
#pragma once

#include <algorithm>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <cstdint>
#include <functional>
#include <list>
#include <utility>
#include <vector>

namespace weir::detail {

class dependents {
 public:
  using end_child = std::function<void(bool kill)>;

  // Adds a child and returns its number. `end`: kills the child if the argument is true, else stops it.
  std::uint64_t adopt(end_child end) {
    children_.push_back({++last_, std::move(end)});
    return last_;
  }
  // The child with this number has ended.
  void joined(std::uint64_t child) {
    std::erase_if(children_, [child](const auto& c) { return c.no == child; });
  }
  bool childless() const noexcept { return children_.empty(); }
  void end_children(bool kill) {
    for (auto& c : children_) c.end(kill);
  }

  // A timer: the signal that cancels it.
  using alarm = std::list<boost::asio::cancellation_signal>::iterator;
  alarm set_alarm() { return alarms_.emplace(alarms_.end()); }
  void unset(alarm a) { alarms_.erase(a); }
  // Cancels all timers.
  void silence() {
    for (auto& a : alarms_) a.emit(boost::asio::cancellation_type::terminal);
  }

 private:
  struct child {
    std::uint64_t no;
    end_child end;
  };
  std::vector<child> children_;
  std::list<boost::asio::cancellation_signal> alarms_;
  std::uint64_t last_ = 0;
};

}  // namespace weir::detail
