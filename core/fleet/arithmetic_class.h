// arithmetic_class.h — the class of an engine's arithmetic: a 64-bit hash of what decides the bits of its
// tokens. A job that moves between engines of one class goes on with the tokens of an undisturbed job;
// between classes it goes on from the same tokens within rounding.
//
// One thing is not in the class: on a device whose products are searched by time, two equal workers may have
// found different algorithms. A deterministic device searches as well, once for each shape.
//
// Thread safety: plain data; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::core::fleet {

struct arithmetic_facts {
  // Of the model's files (core/model/load/weights_digest.h), or of what a model without files is made of. 0:
  // not known, and then nor is the class.
  std::uint64_t weights = 0;
  std::string backend;      // with its instruction sets, or the name of its device; without a device's number
  std::string kv_type;      // of keys and values in pages
  std::string activations;  // what quantised weights multiply
  bool deterministic = false;
};

// The class of an engine of a program of this version. 0: it is not known.
std::uint64_t class_of(const arithmetic_facts& f, std::string_view build);

// A class as people and boards write it: 16 hexadecimal digits; empty: it is not known.
std::string class_text(std::uint64_t arithmetic);
// 0: the text is none.
std::uint64_t parse_class(std::string_view text);

// The name of a backend without the number of its device: "cuda:1 (NVIDIA L4)" becomes "cuda (NVIDIA L4)".
std::string backend_without_number(std::string_view name);

}  // namespace weir::core::fleet
