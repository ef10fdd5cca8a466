// shares.h — which of several engines steps next on a device, so that each gets its part of the device's
// time.
//
// Each engine has a weight W and a line: the device time that it took, divided by W. Of the engines that have
// a step due, the one with the shortest line steps. So while engines have work, their device times are to
// each other as their weights, but for a step of each; and while one of them has none, the others have all.
//
// - A tie goes to the engine that stepped least recently.
// - An engine that had nothing due comes back with the line of the engine that stepped last, or with its own
//   where that is longer. So an engine saves up nothing while it rests, and owes what it took too much.
// - The device time of a step that was begun and is not over is not known yet. The time of the latest step
//   of its kind is added in advance, and corrected when the step is over.
// - Each call of a step counts as least_turn at least, so that a call that computes nothing is no free one.
//
// Thread safety: the owner's thread only. Nothing allocates.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/clock.h"
#include "core/error.h"

namespace weir::core {

inline constexpr double least_weight = 0.001, most_weight = 1000;

// Whether `weight` may be the weight of an engine: a number of [least_weight, most_weight].
constexpr bool is_weight(double weight) noexcept { return weight >= least_weight && weight <= most_weight; }
// The weight that a text is, written as a decimal number; nullopt: it is none.
std::optional<double> parse_weight(std::string_view text) noexcept;

// Kinds of steps: they take times of their own. none: no step is under way.
enum class step_kind : std::uint8_t { none, decode, prompt };

// The account of one engine.
class share_account {
 public:
  explicit share_account(double weight = 1) noexcept : weight_(weight) {}

  double weight() const noexcept { return weight_; }
  // Holds for what is charged from now on. REQUIRES: is_weight(w).
  void set_weight(double w) noexcept { weight_ = w; }

  double line() const noexcept { return line_; }  // in ns of device time, divided by weights

 private:
  friend class shares;
  double weight_;
  double line_ = 0;
  double advance_ = 0;                     // part of `line_` that is for the step under way
  step_kind under_way_ = step_kind::none;  // the kind of that step
  std::array<double, 3> latest_{};         // device time of the latest step, by kind, in ns
  std::uint64_t turn_ = 0;                 // number of its latest step; 0: it had none
  bool awake_ = false;                     // it had something due when it was looked at last
};

// The order of the engines of a device.
class shares {
 public:
  static constexpr duration least_turn = std::chrono::microseconds(1);

  // To be called for every engine before a choice. `due`: the engine has a step due.
  void look(share_account& a, bool due) noexcept {
    if (due && !a.awake_ && a.line_ < now_) a.line_ = now_;
    a.awake_ = due;
  }
  // Whether `a` steps before `b`. REQUIRES: both have a step due.
  static bool before(const share_account& a, const share_account& b) noexcept {
    return a.line_ != b.line_ ? a.line_ < b.line_ : a.turn_ < b.turn_;
  }
  // `a` was chosen, and steps now.
  void begin(share_account& a) noexcept {
    if (a.line_ > now_) now_ = a.line_;
    a.turn_ = ++turns_;
  }
  // A call of a step of `a` is over. `took`: device time of the step that it completed, zero where it
  // completed none. `under_way`: the step that it began and left to the device.
  void charge(share_account& a, duration took, step_kind under_way) noexcept;

 private:
  double now_ = 0;  // the longest line that an engine had when it was chosen
  std::uint64_t turns_ = 0;
};

}  // namespace weir::core
