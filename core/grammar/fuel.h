// fuel.h — what one compilation may cost: units of work, time, and a flag that cancels it.
//
// Every loop whose length a client decides burns units: a unit is about a term, a part or a schema that is
// looked at, and takes some 100 ns. Deadline and flag are looked at every `look_every` units, so that a
// cancel takes effect within a millisecond or so.
//
// Errors, which compile() and constraint::make() return:
// - invalid_param: more units than allowed. The same constraint will always fail.
// - overloaded: the deadline has passed. Another compilation may succeed, so this error must not be cached.
// - unavailable: cancelled.
//
// Thread safety: one thread burns; `cancelled` may be set by any.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "core/clock.h"
#include "core/error.h"

namespace weir::core::grammar {

// Thrown by burn(), and caught in compile() and constraint::make().
struct out_of_fuel {
  error why;
};

class fuel {
 public:
  struct limits {
    std::uint64_t units = 30'000'000;              // some seconds
    const core::clock* time = nullptr;             // null: no deadline
    time_point deadline{};                         // read with `time`
    const std::atomic<bool>* cancelled = nullptr;  // null: nobody cancels
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
