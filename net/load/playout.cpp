#include "net/load/playout.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace weir::load {
namespace {

constexpr std::size_t remembered = 64;

double ms(micros t) { return static_cast<double>(t) / 1000; }

// Plays one stream. Frames [shown, arrived) are in the buffer.
class playout {
 public:
  explicit playout(std::span<const frame> frames) : frames_(frames) { times_.reserve(frames.size()); }

  // The next frame arrives: shows what is due before, learns the rhythm, and shows what is due now.
  void arrive() {
    const double now = ms(frames_[arrived_].at);
    for (double d; shown() < arrived_ && (d = due()) < now;) show(d, d);
    if (arrived_ > 0 && frames_[arrived_ - 1].at == frames_[arrived_].at)
      groups_.back() = arrived_;
    else
      groups_.push_back(arrived_);
    tokens_ += frames_[arrived_].n;
    recent_[arrived_ % remembered] = {now, static_cast<double>(tokens_)};
    ++arrived_;
    learn();
    for (double d; shown() < arrived_ && (d = due()) <= now;) show(d, now);
  }

  std::vector<double> finish() {
    while (shown() < arrived_) {
      const double d = due();
      show(d, d);
    }
    return std::move(times_);
  }

 private:
  struct arrival {
    double at, token;  // token: the number of the frame's last one
  };

  std::size_t shown() const { return times_.size(); }
  double at(std::size_t i) const { return ms(frames_[i].at); }

  // Shows the next frame. `now`: the client's time, which is after `due` if the client learned only now when
  // the frame was due.
  void show(double due, double now) {
    shown_at_ = std::max(due, at(shown()));
    delay_ = shown_at_ - at(shown());
    times_.push_back(std::max(now, shown_at_));
  }

  // When the first frame of the buffer is to be shown, such that all behind it can still be in time.
  // Of frames that arrived together, the last one bounds the wait most.
  double due() {
    const std::size_t first = shown();
    if (first == 0) return at(0);
    const double steer = delay_ < 0.9 * slack_ ? 1.15 : delay_ > 1.1 * slack_ ? 0.85 : 1;
    double wait = gap_ * frames_[first].n * steer;
    while (groups_[group_] < first) ++group_;
    for (std::size_t g = group_; g < groups_.size(); ++g) {
      const auto rank = static_cast<double>(groups_[g] - first + 1);
      wait = std::min(wait, (at(groups_[g]) + playout_longest_ms - shown_at_) / rank);
    }
    return shown_at_ + wait;
  }

  // The mean time between the last tokens, and how late all but 5 in 100 frames are against that line.
  void learn() {
    const std::size_t n = std::min(arrived_, remembered);
    const arrival& oldest = recent_[(arrived_ - n) % remembered];
    const arrival& last = recent_[(arrived_ - 1) % remembered];
    gap_ = (last.at - oldest.at) / std::max(1.0, last.token - oldest.token);
    std::array<double, remembered> late;
    for (std::size_t i = 0; i < n; ++i)
      late[i] = recent_[i].at - oldest.at - (recent_[i].token - oldest.token) * gap_;
    const auto end = late.begin() + static_cast<std::ptrdiff_t>(n);
    const auto most = late.begin() + static_cast<std::ptrdiff_t>(0.95 * static_cast<double>(n - 1));
    std::nth_element(late.begin(), most, end);
    slack_ = std::min(*most - *std::min_element(late.begin(), most + 1), 0.8 * playout_longest_ms);
  }

  std::span<const frame> frames_;
  std::vector<double> times_;        // of the frames that were shown
  std::vector<std::size_t> groups_;  // the last frame of each group that arrived together
  std::size_t group_ = 0;            // the first group with a frame in the buffer
  std::array<arrival, remembered> recent_;
  std::size_t arrived_ = 0;
  std::uint64_t tokens_ = 0;
  double shown_at_ = 0;         // when the last one shown was due
  double delay_ = 0;            // how long after its arrival that was
  double gap_ = 0, slack_ = 0;  // see learn()
};

}  // namespace

std::vector<double> play_out(std::span<const frame> frames) {
  playout p(frames);
  for (std::size_t i = 0; i < frames.size(); ++i) p.arrive();
  return p.finish();
}

}  // namespace weir::load
