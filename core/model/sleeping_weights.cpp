#include "core/model/sleeping_weights.h"

#include <algorithm>

#include "kernels/random_weights.h"

namespace weir::core {
namespace {

using u64 = std::uint64_t;

constexpr u64 copied_at_once = 64u << 20;  // 1.2 ms of a link of 53 GB/s

result<void> fault_of(const kernels::backend& on) {
  if (const char* why = on.fault ? on.fault(on.self) : nullptr)
    return make_error(errc::internal, "the device failed: {}", why);
  return {};
}

// Calls f(offset, bytes) for each piece of all weights.
template <class F>
void for_pieces(u64 bytes, const F& f) {
  for (u64 at = 0; at < bytes; at += copied_at_once) f(at, std::min(copied_at_once, bytes - at));
}

}  // namespace

u64 sleeping_weights::bytes_of(const model_weights& w) noexcept {
  u64 bytes = w.memory.size();
  for (const weight_area& a : w.areas) bytes += places_of(a, 0).count * sample_bytes;
  return bytes;
}

result<void> sleeping_weights::allocate(const backend_ptr& on, const model_weights& w) {
  if (copy_.data()) return {};
  weight_samples samples(on, w.areas);
  kernels::host_buffer copy(on, w.memory.size());
  if (!samples.ready() || !copy.data()) {
    if (auto ok = fault_of(*on); !ok) return ok;
    return make_error(errc::does_not_fit, "no host memory for weights that sleep: {} bytes", bytes_of(w));
  }
  samples_ = std::move(samples);
  copy_ = std::move(copy);
  return {};
}

result<void> sleeping_weights::save(const backend_ptr& on, const model_weights& w) {
  if (auto ok = allocate(on, w); !ok) return ok;
  samples_.take(*on, w.memory, kernels::mix_bits(++sleeps_));
  for_pieces(w.memory.size(), [&](u64 at, u64 bytes) {
    on->do_download(on->self, copy_.data() + at, w.memory.data() + at, bytes);
  });
  return fault_of(*on);
}

result<void> sleeping_weights::restore(const kernels::backend& on, const model_weights& w) {
  constexpr unsigned lane = 0;
  for_pieces(w.memory.size(), [&](u64 at, u64 bytes) {
    std::byte* to = w.memory.data() + at;
    on.do_begin_upload ? on.do_begin_upload(on.self, to, copy_.data() + at, bytes, lane)
                       : on.do_upload(on.self, to, copy_.data() + at, bytes);
  });
  if (on.do_await_upload) on.do_await_upload(on.self, lane);
  const auto differs = samples_.compare(on, w.memory);
  if (auto ok = fault_of(on); !ok) return ok;
  if (differs)
    return make_error(errc::internal,
                      "weights are not what they were before they slept: a sample of bytes {} to {} differs",
                      differs->first, differs->first + differs->bytes - 1);
  return {};
}

}  // namespace weir::core
