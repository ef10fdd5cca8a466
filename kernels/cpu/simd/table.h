// table.h — the table of this instruction set's loops. Included only by simd/<instruction set>.cpp.
#pragma once

#include "kernels/cpu/simd/attention.h"
#include "kernels/cpu/simd/blocks.h"
#include "kernels/cpu/simd/kv_rows.h"
#include "kernels/cpu/simd/limits.h"
#include "kernels/cpu/simd/linear.h"
#include "kernels/cpu/simd/logits.h"
#include "kernels/cpu/simd/pointwise.h"

namespace weir::kernels {
namespace {

constexpr simd_kernels table{
    .name = lanes == 16  ? "avx512"
            : lanes == 8 ? "avx2"
                         : "baseline",
    .products = &products,
    .blocks = &block_products,
    .logits = &loops_over_logits,
    .store_kv = store_kv_row,
    .attend = attend,
    .merge = merge,
    .finish = finish,
    .read = read,
    .widen = widen,
    .rms_norm = rms_norm_row,
    .rotate = rotate,
    .silu_mul = silu_mul_row,
    .add = add_row,
};

}  // namespace
}  // namespace weir::kernels
