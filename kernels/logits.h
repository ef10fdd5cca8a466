// logits.h — loops over one row of logits, or of the weights made from them, as wide as this machine's
// vectors.
//
// core/sample/steps.h says what the loops are for. Their results are the same bits on every instruction set:
// a product is rounded before anything is added to it, and a sum has 16 parts, part i % 16 for element i, and
// one more part for the elements behind the last whole 16.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::kernels {

struct logit_loops {
  struct peak {
    float largest = 0;   // the largest element that is not a NaN; -inf where there is none
    bool sound = false;  // whether no element is a NaN or +inf
  };
  // The peak of `count` elements.
  peak (*largest)(const float* x, std::size_t count);

  // The first i >= from with x[i] >= least; count where there is none.
  std::size_t (*next)(const float* x, std::size_t from, std::size_t count, float least);

  // Divides the elements into groups, at most `most`, and writes the largest element of each to `out`.
  // Returns the number of groups. Elements at the end may be in no group.
  std::size_t (*group_peaks)(const float* x, std::size_t count, std::size_t most, float* out);

  // out[i] = exp((x[i] - top) / temperature), within 1e-6 of it; 0 below 1e-37.
  void (*weigh)(const float* x, std::size_t count, float top, float temperature, float* out);

  // The sum of the weights that reach `least`.
  double (*sum_from)(const float* weights, std::size_t count, float least);

  // Sets weights[i] to 0 where x[i] < least, and where x[i] == least and i > last.
  void (*keep_through)(const float* x, std::size_t count, float least, std::int32_t last, float* weights);

  // Sets every weight below `least` to 0.
  void (*keep_from)(float least, float* weights, std::size_t count);
};

// The loops for the widest vectors of this machine.
const logit_loops& logits();

}  // namespace weir::kernels
