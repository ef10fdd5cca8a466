// sleeping_weights.h — the weights of a model that sleeps, in host memory. They are copied there and back in
// pieces, between which a backend gives way to others (kernels/ops.h), and are checked by samples.
//
// Thread safety: one owner, who owns the backend too.
//
// Errors: does_not_fit where host memory is short; internal where the device failed, or a sample differs.
#pragma once

#include <cstdint>

#include "core/model/weight_samples.h"
#include "core/model/weights.h"
#include "kernels/host_buffer.h"

namespace weir::core {

class sleeping_weights {
 public:
  // Bytes of host memory that a first save() of these weights allocates.
  static std::uint64_t bytes_of(const model_weights& w) noexcept;

  // Copies the weights to host memory. The first call allocates that memory, which stays for later sleeps as
  // long as this lives: to allocate it takes longer than to copy to it. `w` outlives this.
  result<void> save(const backend_ptr& on, const model_weights& w);
  // Copies them back, and compares samples with what they were at the last save(). The weights of an error
  // are not to be used. REQUIRES: a save() that succeeded
  result<void> restore(const kernels::backend& on, const model_weights& w);

 private:
  result<void> allocate(const backend_ptr& on, const model_weights& w);

  kernels::host_buffer copy_;
  weight_samples samples_;
  std::uint64_t sleeps_ = 0;
};

}  // namespace weir::core
