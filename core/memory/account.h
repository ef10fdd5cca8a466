// account.h — counts the host memory that clients make this process use, against one limit.
//
// Code that keeps something for a client (a connection, a body, a waiting prompt, a job's log) has a
// memory_hold of that many bytes for as long. resize() refuses more than the limit. What cannot be refused
// any more, such as the next token of a running job, is counted with force(). It may exceed the limit, and
// then later requests are refused.
//
// Thread safety: an account from any thread; a hold from one thread at a time.
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

// A number of bytes that are counted in an account until the hold is destroyed. A hold keeps its account
// alive. Without an account, bytes() is always 0 and nothing is refused.
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

  // Changes the size to `bytes`. Returns false and changes nothing if that would exceed the limit; a smaller
  // size is never refused.
  [[nodiscard]] bool resize(std::uint64_t bytes) noexcept {
    const auto more = static_cast<std::int64_t>(bytes) - bytes_;
    if (!from_ || more <= 0) return force(bytes), true;
    if (!from_->try_add(more)) return false;
    bytes_ += more;
    return true;
  }
  // Moves `bytes` of this hold to a new one. REQUIRES: bytes <= bytes().
  memory_hold split(std::uint64_t bytes) noexcept {
    memory_hold out(from_);
    out.bytes_ = static_cast<std::int64_t>(bytes);
    bytes_ -= out.bytes_;
    return out;
  }
  // Changes the size to `bytes`, even beyond the limit.
  void force(std::uint64_t bytes) noexcept {
    if (from_) from_->add(static_cast<std::int64_t>(bytes) - bytes_);
    bytes_ = from_ ? static_cast<std::int64_t>(bytes) : 0;
  }

 private:
  std::shared_ptr<memory_account> from_;
  std::int64_t bytes_ = 0;
};

}  // namespace weir::core
