// experts.h — the products of a decoder's mixtures of experts: how slots are put in order, and multiplied.
//
// A slot is a row and one of its experts (ops.h): slot r * chosen + i is row r and its i-th expert. Slots
// whose expert is -1 are left out. No result depends on the order of anything but K: every sum over K is made
// by one block, in an order that the matrix and the division (division.h) decide, and nothing is added by
// atomics.
//
// The functions launch kernels in the device's chain (launch.h); a failure is kept in device::fault.
//
// Thread safety: the device's (device.h).
#pragma once

#include <cstdint>

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/experts/division.h"
#include "kernels/tensor.h"

namespace weir::kernels::cuda {

// The lists of expert_places, in memory of the device.
struct expert_lists {
  std::int32_t* ids = nullptr;
  float *weights = nullptr, *gates = nullptr;
  std::int32_t* order = nullptr;
  expert_tile* tiles = nullptr;
  std::int32_t* count = nullptr;
  std::uint32_t* added = nullptr;
};
inline expert_lists lists_at(std::byte* memory, const expert_places& p) {
  return {
      reinterpret_cast<std::int32_t*>(memory + p.ids),   reinterpret_cast<float*>(memory + p.weights),
      reinterpret_cast<float*>(memory + p.gates),        reinterpret_cast<std::int32_t*>(memory + p.order),
      reinterpret_cast<expert_tile*>(memory + p.tiles),  reinterpret_cast<std::int32_t*>(memory + p.count),
      reinterpret_cast<std::uint32_t*>(memory + p.added)};
}

// What becomes of the product of a slot's row and its expert's matrix w [n, k], plus the expert's bias.
enum class expert_out {
  made,   // out[slot, n], f32
  alone,  // out[slot, n] = f(v), elements
  gated   // the first n / 2 rows of w are gate, the others up: out[slot, n / 2] = f(gate) * up, elements
};

// Which rows x and out of a product have.
enum class slot_places {
  by_slot,   // out has a row for each slot, x for each `share` of them
  in_order,  // both have a row for each slot, in the order of expert_lists::order
  to_slots   // x has them in that order; out by slots
};

struct expert_product {
  expert_matrices w;
  const float* bias = nullptr;  // [w.count, n]; may be null
  const element* x = nullptr;   // [slots / share, k]
  void* out = nullptr;
  std::uint32_t slots = 0;
  std::uint32_t share = 1;  // slots that read one row of x, as in expert_linear (ops.h)
  expert_out kind = expert_out::made;
  activation f = activation::silu;  // where `kind` is not `made`
  float limit = 0;                  // of activation::clamped
  // The experts of slots were written by a kernel in front of the one in front of this one. Where slots are
  // multiplied one by one, and so were those of the kernel in front, weights are then read before that kernel
  // has ended: it lets this one start once all kernels in front of it have ended.
  bool ids_settled = false;
  slot_places places = slot_places::by_slot;  // the others: can_group_slots()
};

// Whether many slots can be multiplied in their order, by warpgroups.
bool can_group_slots(const device& d, const expert_matrices& w, const expert_division& by);

// Copies the rows of x [slots / share, width] of all slots to `out` [slots, width], in the order of the
// slots' experts. Slots without an expert have no place there. REQUIRES: order_slots() was called; width is a
// multiple of 8
void gather_slots(device& d, const expert_lists& lists, const element* x, std::uint32_t slots,
                  std::uint32_t share, std::uint32_t width, element* out);

// Fills `order`, `tiles` and `count` for `slots` slots: slots by expert, and of one expert by their numbers.
// Where slots have no expert, the last entries of `order` are -1. REQUIRES: !by.single
void order_slots(device& d, const expert_lists& lists, std::uint32_t slots, std::uint32_t experts,
                 const expert_division& by);

// Multiplies all slots. `type` is that of the elements of x and out, and of plain weights. REQUIRES: k and n
// are multiples of 8, and n of 16 where `kind` is gated; quantised weights multiply bf16; order_slots() was
// called with this division where that is not single
void multiply_experts(device& d, dtype type, const expert_lists& lists, const expert_product& p,
                      const expert_division& by);

// What becomes of what experts make: row r of x [rows, n] gets the sum of its slots' times their weights
// [slots], slot after slot. No sum where x is null.
struct mixture_sum {
  float* x = nullptr;
  const float* weights = nullptr;
  std::uint32_t chosen = 0;  // slots of a row
};

// Both products of a mixture: `in`, and then `out` of its outputs. Returns whether `sum` was made, too: the
// kernels of few slots with plain weights alone make it. REQUIRES: out.x is in.out; out.kind is made
bool multiply_mixture(device& d, dtype type, const expert_lists& lists, const expert_product& in,
                      const expert_product& out, const expert_division& by, const mixture_sum& sum);

// The ways of multiplying, each in the file of its name, for the two functions above.
struct expert_args;
bool can_stream_bulk(const device& d, const expert_args& a);
void expert_stream(device& d, dtype type, const expert_args& a);
void expert_stream_bulk(device& d, dtype type, const expert_args& a, const mixture_sum& sum,
                        std::uint32_t* counts);
void expert_stream_blocks(device& d, dtype type, const expert_args& a);
void expert_tiles(device& d, dtype type, const expert_args& a, const expert_division& by);
void expert_groups(device& d, dtype type, const expert_product& p, const expert_args& a,
                   const expert_division& by);
void expert_tile_blocks(device& d, dtype type, const expert_args& a, const expert_division& by);

}  // namespace weir::kernels::cuda
