// fuel.h — what one compilation may cost: units of work, and time. It shares its thread with others (turn.h).
//
// Every loop whose length a client decides burns units: a unit is about a term, a part or a schema that is
// looked at, and takes some 100 ns. Deadline and turn are looked at every `look_every` units, so that a
// cancel takes effect within a millisecond or so, and others have their turns.
//
// Errors, which compile() and constraint::make() return:
// - invalid_param: more units than allowed. The same constraint will always fail.
// - overloaded: the deadline has passed. Another compilation may succeed, so this error must not be cached.
// - unavailable: nobody wants the constraint any more.
//
// Thread safety: one thread burns.
#pragma once

#include <cstdint>
#include <limits>

#include "core/clock.h"
#include "core/error.h"
#include "core/turn.h"

namespace weir::core::grammar {

// Thrown by burn(), and caught in compile() and constraint::make().
struct out_of_fuel {
  error why;
};

class fuel {
 public:
  struct limits {
    std::uint64_t units = 30'000'000;  // some seconds
    turn* at = nullptr;  // null: nobody shares the thread, nobody cancels, and there is no deadline
    time_point deadline = time_point::max();  // by the turn's clock
  };
  static constexpr std::uint64_t look_every = 1'000;

  explicit fuel(const limits& most) : most_(most) {}
  fuel(const fuel&) = delete;
  fuel& operator=(const fuel&) = delete;

  void burn(std::uint64_t units = 1) {
    burnt_ += units;
    if (burnt_ >= next_look_) look();
  }
  std::uint64_t burnt() const { return burnt_; }

 private:
  void look();

  const limits most_;
  std::uint64_t burnt_ = 0, next_look_ = look_every;
};

}  // namespace weir::core::grammar
