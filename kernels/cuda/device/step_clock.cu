#include "kernels/cuda/device/step_clock.h"

#include <map>
#include <mutex>

namespace weir::kernels::cuda {
namespace {

// The line of device `index`, which its decoders keep.
std::shared_ptr<device_line> line_of(int index) {
  static std::mutex lock;
  static std::map<int, std::weak_ptr<device_line>> lines;
  std::lock_guard hold(lock);
  auto& known = lines[index];
  auto line = known.lock();
  if (!line) known = line = std::make_shared<device_line>();
  return line;
}

}  // namespace

step_clock::step_clock(device& d) : d_(d), line_(line_of(d.index)) {}

bool step_clock::make(std::shared_ptr<timed_event>& e) {
  if (!e) e = std::make_shared<timed_event>();
  return e->at || WEIR_CUDA(d_, cudaEventCreate(&e->at));
}

void step_clock::begin() {
  latest_ ^= 1;
  span& s = spans_[latest_];
  s.measured = false;
  if (!company_ || d_.failed() || !make(s.from) || !make(s.to)) return;
  if (line_->last) WEIR_CUDA(d_, cudaStreamWaitEvent(d_.stream, line_->last->at, 0));
  WEIR_CUDA(d_, cudaEventRecord(s.from->at, d_.stream));
  s.measured = !d_.failed();
}

void step_clock::end() {
  span& s = spans_[latest_];
  if (!s.measured || d_.failed()) return;
  if (WEIR_CUDA(d_, cudaEventRecord(s.to->at, d_.stream))) line_->last = s.to;
}

std::optional<double> step_clock::time() {
  const span& s = spans_[drawn_];
  float ms = 0;
  if (!s.measured || d_.failed()) return std::nullopt;
  const bool over = WEIR_CUDA(d_, cudaEventSynchronize(s.to->at)) &&
                    WEIR_CUDA(d_, cudaEventElapsedTime(&ms, s.from->at, s.to->at));
  if (!over) return std::nullopt;
  return 1e6 * ms;
}

}  // namespace weir::kernels::cuda
