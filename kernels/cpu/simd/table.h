// table.h — the table of this instruction set's loops. Included only by simd/<instruction set>.cpp.
#pragma once

#include "kernels/cpu/simd/attention.h"
#include "kernels/cpu/simd/blocks.h"
#include "kernels/cpu/simd/experts.h"
#include "kernels/cpu/simd/kv_rows.h"
#include "kernels/cpu/simd/limits.h"
#include "kernels/cpu/simd/linear.h"
#include "kernels/cpu/simd/logits.h"
#include "kernels/cpu/simd/pointwise.h"

namespace weir::kernels {

// simd/<instruction set>_dots.cpp
const product_path* baseline_dots(dtype type);
const product_path* avx2_dots(dtype type);
const product_path* avx512_dots(dtype type);

namespace {

#if defined(__AVX512F__)
constexpr auto dots = avx512_dots;
#elif defined(__AVX2__)
constexpr auto dots = avx2_dots;
#else
constexpr auto dots = baseline_dots;
#endif

constexpr simd_kernels table{
    .name = lanes == 16  ? "avx512"
            : lanes == 8 ? "avx2"
                         : "baseline",
    .products = &products,
    .blocks = &block_products,
    .dots = dots,
    .logits = &loops_over_logits,
    .store_kv = store_kv_row,
    .attend = attend,
    .merge = merge,
    .finish = finish,
    .read = read,
    .widen = widen,
    .norm = norm_row,
    .rotate = rotate,
    .activate = activate_row,
    .sigmoid_mul = sigmoid_mul_row,
    .add = add_row,
    .soft_cap = soft_cap_row,
    .multiply_rows = multiply_plain_rows,
    .score = score_row,
    .mix = mix_row,
};

}  // namespace
}  // namespace weir::kernels
