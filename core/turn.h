// turn.h — how long work shares a few places with the work of others: at regular points it asks its turn
// whether to go on, and waits inside that call while others have theirs.
//
// The turn is a clock of the work's own time, which stands still while the work waits. A limit of time that
// is set by this clock bounds what the work does, not what others do meanwhile.
//
// Thread safety: one thread works, and calls every member.
#pragma once

#include <cstddef>

#include "core/clock.h"

namespace weir::core {

class turn : public clock {
 public:
  // Called a millisecond of work apart or so; may block. false: nobody wants the result any more, and so will
  // every later call say. The caller holds no lock that other work needs.
  virtual bool go_on() = 0;
};

// Thrown by work_steps, and caught where the work began.
struct nobody_waits {};

// Asks a turn once in some thousands of steps: a step is a byte or a symbol that is looked at, and takes some
// 10 to 100 ns.
class work_steps {
 public:
  static constexpr std::size_t look_every = 8'192;

  explicit work_steps(turn* at) : at_(at) {}  // null: nobody else needs the thread

  void add(std::size_t steps = 1) {
    if ((done_ += steps) >= look_every) look();
  }

 private:
  void look() {
    done_ = 0;
    if (at_ && !at_->go_on()) throw nobody_waits{};
  }

  turn* const at_;
  std::size_t done_ = 0;
};

}  // namespace weir::core
