// gguf_rope.h — what the keys and tensors of a GGUF file say about rotation, as config.json says it.
//
// Thread safety: pure functions; any thread. Errors are recorded in the reader: bad_file; not_supported.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <vector>

#include "core/model/load/gguf_architectures.h"
#include "core/model/load/gguf_reader.h"

namespace weir::core {

// Reads the first bytes of a tensor from its file.
using read_tensor = std::function<result<void>(const stored_tensor& t, std::span<std::byte> to)>;

struct gguf_heads {
  std::uint32_t head_dim = 0, context = 0;
  bool two_tables = false;  // layers with a window have a table of their own
};

// The object rope_parameters. `tensors`: of all files, by the names there: rope_factors_long.weight and
// rope_factors_short.weight are longrope's divisors.
boost::json::object gguf_rope(architecture_keys& in, const gguf_architecture& a, const gguf_heads& heads,
                              const tensor_map& tensors, const read_tensor& read);

// Reads a tensor of divisors of the rotary frequencies, one for each of `pairs` pairs that turn: numbers above 0.
// Errors: bad_file, with `what` in front, also where it is missing.
result<std::vector<float>> read_rope_factors(const tensor_map& tensors, std::string_view name,
                                             std::size_t pairs, const read_tensor& read, std::string_view what);

}  // namespace weir::core
