// gguf_config.h — what a GGUF file's keys say about the model: its config.json, and what ends its texts.
//
// Thread safety: pure functions; any thread. Errors are recorded in the reader: bad_file; not_supported, with
// the key's name, for a key that would change the arithmetic and that weir does not read.
#pragma once

#include <boost/json/object.hpp>
#include <vector>

#include "core/model/config.h"
#include "core/model/load/gguf_architectures.h"
#include "core/model/load/gguf_reader.h"
#include "core/model/load/gguf_rope.h"
#include "core/token.h"

namespace weir::core {

// The architecture that general.architecture names; null, with an error recorded, where it is not supported.
const gguf_architecture* gguf_architecture_of(gguf_reader& keys);

// The config.json that says the same as these keys. `tensors`: the tensors of all files, by their names in
// the files. They tell what no key does: whether the model has a head of its own, and which norms.
boost::json::object gguf_config(gguf_reader& keys, const gguf_architecture& a, const tensor_map& tensors,
                                const read_tensor& read);

// How GGUF files store the weights of this config: which biases are there, and the order of rows.
stored_form gguf_form(stored_form of_family, const gguf_architecture& a, const tensor_map& tensors);

// The ids of the tokens that end a text: those that a key names, and those that are spelled like one.
std::vector<token_id> gguf_stop_ids(gguf_reader& keys);

}  // namespace weir::core
