// dot_form.h — how the codes of each quantised type are multiplied by codes of activations (dots.h), and the
// order in which the two meet.
#pragma once

#include "kernels/cpu/simd/block_form.h"

namespace weir::kernels {
namespace {

constexpr std::size_t dot_group = 32;  // activations that share a scale

// How codes of weights are multiplied. An unsigned byte times a signed one, two of them added, has to fit
// into 16 bits.
enum class dot_kind : std::uint8_t {
  nibbles,       // 4 bits, whose value is the code less the zero: unsigned bytes, a group summed in 16 bits
  bytes,         // at most 6 bits: unsigned bytes, four products summed in 16 bits
  table,         // 4 bits with a table of values: signed bytes, two products summed in 16 bits
  signed_bytes,  // 8 bits: the same
};

struct dot_form {
  block_form block;
  dot_kind kind;
  std::int8_t zero;  // the code that means 0, where it is not in the panel
};

constexpr dot_kind dot_kind_of(dtype type) {
  const block_format& f = format_of(type);
  if (f.code_bits == 8) return signed_in_words(f) ? dot_kind::signed_bytes : dot_kind::bytes;
  return f.values[15] - f.values[0] == 15 ? dot_kind::nibbles : dot_kind::table;
}
constexpr dot_form dot_form_of(dtype type) {
  const block_format& f = format_of(type);
  const dot_kind kind = dot_kind_of(type);
  const int zero = kind == dot_kind::nibbles ? -static_cast<int>(f.values[0])
                   : kind == dot_kind::bytes ? f.offset
                                             : 0;
  return {form_of(type), kind, static_cast<std::int8_t>(zero)};
}

constexpr bool has_nibbles(dot_kind k) { return k == dot_kind::nibbles || k == dot_kind::table; }
constexpr std::size_t dot_words = dot_group / 4;

// The index of the activation that is byte `b` of word `i`. The words come in the order in which add_words()
// takes weights out of a panel.
constexpr std::size_t place_in_words(dot_kind k, std::size_t i, std::size_t b) {
  return has_nibbles(k) ? i / 2 * 8 + 2 * b + i % 2 : 4 * i + b;
}

}  // namespace
}  // namespace weir::kernels
