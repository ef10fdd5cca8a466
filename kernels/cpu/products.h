// products.h — matrix products through oneDNN, where it was found at build time and is asked for.
//
// The weights are cut along their rows into pieces of one size, the batch into blocks of a few sizes, so that
// few primitives serve every shape. Each worker of our team runs its pieces on one thread: the library starts
// none. bf16 weights meet activations as the sum of two bf16 halves, which keeps 16 bits of each.
//
// Thread safety: multiply() from the owner of the backend alone.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/cpu/simd.h"
#include "kernels/cpu/team.h"
#include "kernels/ops.h"

namespace weir::kernels {

class products {
 public:
  explicit products(bool wanted);
  ~products();

  bool available() const noexcept { return impl_ != nullptr; }

  // Computes the first rows of op.out and returns how many: whole blocks only; 0 where there is nothing to
  // gain.
  std::uint32_t multiply(const linear& op, const simd_kernels& simd, team& workers);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace weir::kernels
