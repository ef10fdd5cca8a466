// send_progress.h — whether a client takes an answer fast enough for the server to go on sending it.
//
// A large answer may take as long as the client moves a least rate; an answer that does not move is ended.
// Progress is what the client's system has acknowledged, not what the kernel here has taken: a send buffer
// would hide a slow reader.
//
// Pure: time and bytes are passed in. Used on one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace weir::net {

class send_progress {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr double least_bytes_per_s = 1024;

  // Judged once in every `window`: an answer has at least so long to move at all.
  explicit send_progress(std::chrono::milliseconds window) : window_(window) {}

  // A write is under way / none is.
  void begin() noexcept { writing_ = true; }
  void end() noexcept {
    writing_ = false;
    window_began_.reset();
  }
  bool writing() const noexcept { return writing_; }

  // Called as time passes while a write is under way, with the bytes acknowledged on the connection so far.
  // True: over the last window the client took less than the least rate.
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
  std::uint64_t before_ = 0;
};

// A write is under way for as long as this lives.
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
