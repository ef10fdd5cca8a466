// step_clock.h — the order of the steps of several decoders on one device, and how long the device computes
// each of them.
//
// Each decoder has a stream of its own, and a device runs what is on several streams at once. Then a step has
// no time of its own, and a small model's kernels wait behind a large one's in no order that anybody chose.
// So while several models have work, a step waits on the device for the end of the step that was begun
// before it, whoever's that was. A step is between two events: in front of its first launch, which may be
// that of the draws of the step before, and behind its last. A decoder that is alone records and waits for
// nothing.
//
// Thread safety: one thread for all decoders of a device; destructors on any thread.
#pragma once

#include <memory>
#include <optional>

#include "kernels/cuda/device/device.h"

namespace weir::kernels::cuda {

struct timed_event {
  cudaEvent_t at = nullptr;
  timed_event() = default;
  timed_event(const timed_event&) = delete;
  timed_event& operator=(const timed_event&) = delete;
  ~timed_event() {
    if (at) cudaEventDestroy(at);
  }
};

// What the decoders of one device share.
struct device_line {
  std::shared_ptr<timed_event> last;  // the end of the step that was begun last; null: none was
};

class step_clock {
 public:
  explicit step_clock(device& d);

  // Whether the next steps are ordered and measured.
  void set_company(bool others) noexcept { company_ = others; }
  // In front of the launches of a step, and behind them. A failure is the device's (device::fault).
  void begin();
  void end();
  // The draws of the latest step are begun.
  void draw() noexcept { drawn_ = latest_; }
  // The device time in ns of the step whose draws were begun last; nullopt: it was not measured. Waits for
  // the end of a step that nothing was drawn from.
  std::optional<double> time();

 private:
  struct span {
    std::shared_ptr<timed_event> from, to;  // null: not made yet
    bool measured = false;
  };
  bool make(std::shared_ptr<timed_event>& e);

  device& d_;
  const std::shared_ptr<device_line> line_;
  bool company_ = false;
  span spans_[2];  // of the latest step and of the one before it
  unsigned latest_ = 0, drawn_ = 0;
};

}  // namespace weir::kernels::cuda
