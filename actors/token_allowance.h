// token_allowance.h — how many tokens a minute a client may use: a token bucket in one number.
//
// The bucket holds what a minute allows, fills steadily within a minute, and is charged after the fact with
// what jobs really used, so it can be in debt. The number is the time at which the bucket will be full again:
// a charge of n tokens moves it by the time in which n tokens flow in (the generic cell rate algorithm, ITU-T
// I.371). The bucket is empty when that time is a minute away.
//
// Thread safety: any thread, no lock; set() one thread at a time. Time is passed in, and may go back a
// little from one call to the next, as it does between threads.
//
// Invariant:
//   1. A client that begins to use tokens only while open() uses, within any t minutes, at most
//      per_min * (t + 1) tokens and what its running jobs still use after the bucket is empty.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/clock.h"

namespace weir::actors {

class token_allowance {
 public:
  static constexpr std::uint64_t most_per_min = 1'000'000'000;

  // Sets the limit; 0: there is none. The number of tokens that the bucket lacks, a debt included, stays the
  // same. A bucket that had no limit is full. A charge at the same moment may be lost.
  // REQUIRES: per_min <= most_per_min.
  void set(std::uint64_t per_min, core::time_point now) noexcept {
    const std::uint64_t before = per_min_.load(std::memory_order_relaxed);
    if (before == per_min) return;
    if (before != 0 && per_min != 0) {
      const double scale = static_cast<double>(before) / static_cast<double>(per_min);
      const double missing = std::min(static_cast<double>(from_full(now)) * scale, double{longest_debt});
      full_at_.store(ns(now) + static_cast<std::int64_t>(missing), std::memory_order_relaxed);
    } else {
      full_at_.store(ns(now), std::memory_order_relaxed);
    }
    per_min_.store(per_min, std::memory_order_relaxed);
  }

  std::uint64_t per_min() const noexcept { return per_min_.load(std::memory_order_relaxed); }

  // `tokens` were used at `at`.
  void charge(std::uint64_t tokens, core::time_point at) noexcept {
    const std::uint64_t rate = per_min();
    if (rate == 0 || tokens == 0) return;
    const std::int64_t cost = time_of(tokens, rate), latest = ns(at) + longest_debt;
    const auto charged = [&](std::int64_t was) {
      return std::max(was, std::min(std::max(was, ns(at)) + cost, latest));
    };
    std::int64_t was = full_at_.load(std::memory_order_relaxed);
    while (!full_at_.compare_exchange_weak(was, charged(was), std::memory_order_relaxed)) {
    }
  }

  // How long until there is a token in the bucket; 0: there is one, or there is no limit. With no charge
  // meanwhile, wait() is 0 after exactly this time, and not before.
  core::duration wait(core::time_point now) const noexcept {
    const std::uint64_t rate = per_min();
    if (rate == 0) return {};
    return core::duration(std::max<std::int64_t>(0, from_full(now) + time_of(1, rate) - minute));
  }
  bool open(core::time_point now) const noexcept { return wait(now) == core::duration(); }

  // Whole tokens in the bucket; 0 while it is in debt, or where there is no limit.
  std::uint64_t left(core::time_point now) const noexcept {
    const std::int64_t room = minute - from_full(now);
    if (room <= 0) return 0;
    constexpr double rounding = 1e-6;  // whole numbers of tokens stay whole
    return static_cast<std::uint64_t>(static_cast<double>(room) / minute * static_cast<double>(per_min()) +
                                      rounding);
  }
  // How long until the bucket is full.
  core::duration until_full(core::time_point now) const noexcept { return core::duration(from_full(now)); }

 private:
  static constexpr std::int64_t minute = 60'000'000'000;               // ns
  static constexpr std::int64_t longest_debt = 30 * 24 * 60 * minute;  // what is beyond it is forgotten

  static std::int64_t ns(core::time_point t) noexcept { return t.time_since_epoch().count(); }
  // Time in ns in which `tokens` tokens flow in, rounded up. Tokens beyond what a job can use do not count.
  static std::int64_t time_of(std::uint64_t tokens, std::uint64_t rate) noexcept {
    const auto n = static_cast<std::int64_t>(std::min<std::uint64_t>(tokens, 100'000'000));
    const auto per = static_cast<std::int64_t>(rate);
    return (n * minute + per - 1) / per;
  }
  std::int64_t from_full(core::time_point now) const noexcept {
    return std::max<std::int64_t>(0, full_at_.load(std::memory_order_relaxed) - ns(now));
  }

  std::atomic<std::uint64_t> per_min_{0};
  std::atomic<std::int64_t> full_at_{0};  // on the service's clock, in ns
};

}  // namespace weir::actors
