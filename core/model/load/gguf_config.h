// gguf_config.h — what a GGUF file's keys say about the model: its config.json, and what ends its texts.
//
// Thread safety: pure functions; any thread. Errors are recorded in the reader: bad_file; not_supported, with
// the key's name, for a key that would change the arithmetic and that weir does not read.
#pragma once

#include <boost/json/object.hpp>
#include <vector>

#include "core/model/load/gguf_reader.h"
#include "core/token.h"

namespace weir::core {

// The config.json that says the same as these keys. `tensors`: the tensors of all files, by their names in
// the files. They tell what no key does: whether the model has biases, and whether it has a head of its own.
boost::json::object gguf_config(gguf_reader& keys, const tensor_map& tensors);

// The ids of the tokens that end a text: those that a key names, and those that are spelled like one.
std::vector<token_id> gguf_stop_ids(gguf_reader& keys);

// Reads the tensor `rope_freqs.weight`: the factors by which the rotary frequencies are divided.
// `in`: the tensor's file. `frequencies`: their number, half the size of a head. Error: not_supported,
// bad_file.
result<std::vector<float>> read_rope_divisors(const stored_tensor& t, const opened_file& in,
                                              std::size_t frequencies, std::string_view what);

}  // namespace weir::core
