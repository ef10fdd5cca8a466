// account.h — the bytes that clients make this process hold: one sum, one limit.
//
// Whoever keeps something for a client (a connection, a body, a prompt that waits, a job's log) holds its
// bytes in the account for as long as it keeps it. What can be refused is refused once the sum would pass the
// limit; what can no longer be refused (the next token of a running job) is counted all the same, and makes
// the next request a refusal.
//
// Thread safety: the account from any thread; a hold is one thread's at a time, and keeps its account alive.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace weir::core {

class memory_account {
 public:
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::int64_t>::max();

  std::uint64_t used() const noexcept {
    return static_cast<std::uint64_t>(used_.load(std::memory_order_relaxed));
  }
  std::uint64_t limit() const noexcept {
    return static_cast<std::uint64_t>(limit_.load(std::memory_order_relaxed));
  }
  void set_limit(std::uint64_t bytes) noexcept {
    limit_.store(static_cast<std::int64_t>(std::min(bytes, unlimited)), std::memory_order_relaxed);
  }

 private:
  friend class memory_hold;
  void add(std::int64_t bytes) noexcept { used_.fetch_add(bytes, std::memory_order_relaxed); }
  bool try_add(std::int64_t bytes) noexcept {
    if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limit_.load(std::memory_order_relaxed))
      return true;
    add(-bytes);
    return false;
  }

  std::atomic<std::int64_t> used_{0}, limit_{static_cast<std::int64_t>(unlimited)};
};

// Some bytes of an account, given back when the hold goes.
class memory_hold {
 public:
  memory_hold() = default;
  explicit memory_hold(std::shared_ptr<memory_account> from) noexcept : from_(std::move(from)) {}
  memory_hold(memory_hold&& other) noexcept
      : from_(std::move(other.from_)), bytes_(std::exchange(other.bytes_, 0)) {}
  memory_hold& operator=(memory_hold&& other) noexcept {
    from_.swap(other.from_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~memory_hold() { force(0); }

  std::uint64_t bytes() const noexcept { return static_cast<std::uint64_t>(bytes_); }

  // Holds `bytes` from now on, instead of what it held. False, and nothing changed: there is no room for
  // more. Less is never refused.
  [[nodiscard]] bool resize(std::uint64_t bytes) noexcept {
    const auto more = static_cast<std::int64_t>(bytes) - bytes_;
    if (!from_ || more <= 0) return force(bytes), true;
    if (!from_->try_add(more)) return false;
    bytes_ += more;
    return true;
  }
  // A hold of its own for `bytes` of what this one holds. REQUIRES: bytes <= bytes().
  memory_hold split(std::uint64_t bytes) noexcept {
    memory_hold out(from_);
    out.bytes_ = static_cast<std::int64_t>(bytes);
    bytes_ -= out.bytes_;
    return out;
  }
  // As resize(), whatever the limit is.
  void force(std::uint64_t bytes) noexcept {
    if (from_) from_->add(static_cast<std::int64_t>(bytes) - bytes_);
    bytes_ = from_ ? static_cast<std::int64_t>(bytes) : 0;
  }

 private:
  std::shared_ptr<memory_account> from_;
  std::int64_t bytes_ = 0;
};

}  // namespace weir::core
