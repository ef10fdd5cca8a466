// gguf_config.h — what a GGUF file's keys say about the model: its config.json, and what ends its texts.
//
// Thread safety: pure functions; any thread. Errors are recorded in the reader: bad_file; not_supported for
// what would change the arithmetic and is not read, with the key's name.
#pragma once

#include <boost/json/object.hpp>
#include <vector>

#include "core/model/load/gguf_reader.h"
#include "core/token.h"

namespace weir::core {

// The config.json that these keys come to. `tensors`: those of all files, by the names in the files; they say
// what no key says: whether there are biases, and a head of its own.
boost::json::object gguf_config(gguf_reader& keys, const tensor_map& tensors);

// The ids of the tokens that end a text: those that a key names, and those that are spelled like one.
std::vector<token_id> gguf_stop_ids(gguf_reader& keys);

// The factors by which the frequencies of `rope_freqs.weight` are divided. `frequencies`: their number, half
// the size of a head. Error: not_supported, bad_file.
result<std::vector<float>> read_rope_divisors(const stored_tensor& t, std::size_t frequencies,
                                              std::string_view what);

}  // namespace weir::core
