// shard_counts.h — what one shard counts about its clients. server_state adds the shards up when somebody
// asks.
//
// Thread safety: the shard's thread counts; any thread reads, and may miss what is counted at the same time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/delays.h"

namespace weir::net {

// A number that one thread raises and any thread reads.
class shard_counter {
 public:
  void add() noexcept { n_.store(value() + 1, std::memory_order_relaxed); }
  std::uint64_t value() const noexcept { return n_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> n_{0};
};

// Ends of WebSockets by close code. A client may send any code: those that are not listed count as `other`,
// so that clients cannot make the list longer.
class close_counts {
 public:
  static constexpr std::uint16_t other = 0;

  void add(std::uint16_t code) noexcept {
    const auto at = std::find(codes.begin(), codes.end() - 1, code);
    by_code_[static_cast<std::size_t>(at - codes.begin())].add();
  }
  // Calls f(code, count) for each code that came, in ascending order; `other` comes last.
  template <class F>
  void each(F f) const {
    for (std::size_t i = 0; i < codes.size(); ++i)
      if (const auto n = by_code_[i].value(); n > 0) f(codes[i], n);
  }

 private:
  // RFC 6455's, then the server's own (close_code).
  static constexpr std::array<std::uint16_t, 20> codes{1000, 1001, 1002, 1003, 1005, 1006, 1007,
                                                       1008, 1009, 1010, 1011, 1012, 1013, 4401,
                                                       4403, 4408, 4429, 4440, 4441, other};
  std::array<shard_counter, codes.size()> by_code_;
};

// Refusals by reason. A reason is a constant of the program's, such as an error code of docs/wire.md. From
// the 64th on, new reasons count together.
class reason_counts {
 public:
  // `reason`: lives as long as the program.
  void add(std::string_view reason) noexcept {
    const std::size_t known = known_.load(std::memory_order_relaxed);
    std::size_t i = 0;
    while (i < known && slots_[i].reason != reason) ++i;
    if (i == slots_.size()) --i;
    if (i == known) {
      slots_[i].reason = i + 1 < slots_.size() ? reason : std::string_view("other");
      known_.store(known + 1, std::memory_order_release);
    }
    slots_[i].count.add();
  }
  // Calls f(reason, count) for each reason that came, in the order in which reasons first came.
  template <class F>
  void each(F f) const {
    const std::size_t known = known_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < known; ++i) f(slots_[i].reason, slots_[i].count.value());
  }

 private:
  struct slot {
    std::string_view reason;
    shard_counter count;
  };
  std::array<slot, 64> slots_;
  std::atomic<std::size_t> known_{0};
};

struct shard_counts {
  // For each frame or chunk, how long its last token waited for this server: from when it was sampled, or the
  // client's window or pace let it go, until the kernel took it.
  core::delays sampled_to_sent;
  close_counts closed;     // WebSockets
  reason_counts rejected;  // requests and messages that were answered with an error, by its code
  shard_counter resumed;   // responses that a client followed again
};

}  // namespace weir::net
