// pool_mover.h — lets the pool of an engine shrink and grow at random between steps.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <random>

#include "core/engine.h"

namespace weir::tests {

class pool_mover {
 public:
  // `least`: the fewest pages that the engine's longest sequence leaves the pool. The engine outlives it.
  pool_mover(core::engine& e, std::int32_t least, std::uint64_t seed)
      : engine_(e), least_(least), random_(seed) {}

  // The memory comes and goes on another thread, while the engine steps.
  bool beside = false;
  // Called when the model has another number of pages and no change is under way.
  std::function<void()> changed;
  std::uint64_t shrunk = 0, grown = 0, busy = 0, taken_back = 0, waited = 0;

  // To be called between steps: begins, goes on with, or takes back a change of the pool.
  void move() {
    if (under_way_.valid()) return arrive(false);
    if (target_) {
      if (random_() % 8 == 0) return take_back();
      return go_on();
    }
    if (random_() % 3 != 0) return;
    const auto most = engine_.most_pages();
    const auto to = least_ + static_cast<std::int32_t>(random_() % static_cast<unsigned>(most - least_ + 1));
    if (to < engine_.pages()) {
      target_ = to;
      return go_on();
    }
    if (to == engine_.pages()) return;
    ++grown;
    set(to);
  }

  // Waits for a change that is under way.
  void finish() {
    if (under_way_.valid()) arrive(true);
  }

 private:
  void go_on() {
    const auto done = engine_.let_go_of_pages(*target_);
    check();
    if (!done) {
      REQUIRE(done.error().code == core::errc::busy);
      REQUIRE(engine_.counts().pages_used > static_cast<std::uint32_t>(*target_));
      REQUIRE(engine_.counts().pages_total == static_cast<std::uint32_t>(engine_.pages()));
      target_.reset();
      ++busy;
      return;
    }
    if (!*done) {
      ++waited;
      return;
    }
    REQUIRE(engine_.counts().pages_total == static_cast<std::uint32_t>(*target_));
    if (random_() % 8 == 0) return take_back();  // also once all pages have left
    const std::int32_t to = *target_;
    target_.reset();
    ++shrunk;
    set(to);
  }

  void set(std::int32_t pages) {
    under_way_ = std::async(beside ? std::launch::async : std::launch::deferred,
                            [this, pages] { return engine_.set_pages(pages); });
    if (!beside) arrive(true);
  }

  void arrive(bool wait) {
    if (!wait && under_way_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    REQUIRE(under_way_.get().has_value());
    engine_.use_pages(engine_.pages());
    if (changed) changed();
    check();
  }

  void take_back() {
    engine_.use_pages(engine_.pages());
    target_.reset();
    ++taken_back;
    check();
    REQUIRE(engine_.counts().pages_total == static_cast<std::uint32_t>(engine_.pages()));
  }

  void check() const {
    INFO(engine_.check_integrity());
    REQUIRE(engine_.check_integrity().empty());
  }

  core::engine& engine_;
  const std::int32_t least_;
  std::mt19937_64 random_;
  std::optional<std::int32_t> target_;
  std::future<core::result<void>> under_way_;
};

}  // namespace weir::tests
