// send_progress.h — decides whether a client reads an answer fast enough for the server to go on sending.
//
// A large answer may take any time while the client reads at least least_bytes_per_s. An answer that the
// client reads more slowly is ended. Progress is counted in bytes that the client's system has acknowledged.
// Bytes that the kernel here has taken do not count, since its send buffer would hide a slow reader.
//
// Thread safety: one thread. Time and bytes are passed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace weir::net {

class send_progress {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr double least_bytes_per_s = 1024;

  // `window`: the period over which the rate is measured.
  explicit send_progress(std::chrono::milliseconds window) : window_(window) {}

  // A write has begun.
  void begin() noexcept { writing_ = true; }
  // The write has ended.
  void end() noexcept {
    writing_ = false;
    window_began_.reset();
  }
  bool writing() const noexcept { return writing_; }

  // To be called repeatedly while a write is under way. `acknowledged`: bytes that the client's system has
  // acknowledged since the connection began. Returns true if the rate in the latest window was too low.
  bool stalled(time_point now, std::uint64_t acknowledged) noexcept {
    if (!window_began_) return restart(now, acknowledged);
    const auto passed = now - *window_began_;
    if (passed < window_) return false;
    const double least = least_bytes_per_s * std::chrono::duration<double>(passed).count();
    if (static_cast<double>(acknowledged - before_) < least) return true;
    return restart(now, acknowledged);
  }

 private:
  bool restart(time_point now, std::uint64_t acknowledged) noexcept {
    window_began_ = now;
    before_ = acknowledged;
    return false;
  }

  const std::chrono::milliseconds window_;
  bool writing_ = false;
  std::optional<time_point> window_began_;
  std::uint64_t before_ = 0;  // acknowledged bytes when the window began
};

// Calls begin(), and end() when it is destroyed.
class write_under_way {
 public:
  explicit write_under_way(send_progress& p) : progress_(p) { progress_.begin(); }
  write_under_way(const write_under_way&) = delete;
  write_under_way& operator=(const write_under_way&) = delete;
  ~write_under_way() { progress_.end(); }

 private:
  send_progress& progress_;
};

}  // namespace weir::net
