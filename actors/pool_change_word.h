// pool_change_word.h — one change of a pool's size that the loader's thread makes while the owner steps the
// engine. One word says whose turn it is, so that an engine never goes while its pool is changed.
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/engine.h"

namespace weir::actors {

class pool_change_word {
 public:
  // REQUIRES: the engine lives until close() has returned, or the change is over
  pool_change_word(core::engine& e, std::uint32_t pages) : engine_(e), pages_(pages) {}

  // The loader's thread: changes the pool, unless close() was called. It may throw, as the model's call may.
  core::result<> carry_out() {
    auto expected = turn::waits;
    if (!turn_.compare_exchange_strong(expected, turn::runs))
      return core::make_error(core::errc::unavailable, "the engine is gone");
    const struct over {
      std::atomic<turn>& t;
      ~over() {
        t.store(turn::over);
        t.notify_all();
      }
    } at_end{turn_};
    return engine_.set_pages(static_cast<std::int32_t>(pages_));
  }

  // The owner's thread: carry_out() does nothing from here on. Waits for the end of one that is under way.
  void close() noexcept {
    auto expected = turn::waits;
    if (turn_.compare_exchange_strong(expected, turn::over)) return;
    turn_.wait(turn::runs);
  }

 private:
  enum class turn : std::uint8_t { waits, runs, over };
  core::engine& engine_;
  const std::uint32_t pages_;
  std::atomic<turn> turn_{turn::waits};
};

}  // namespace weir::actors
