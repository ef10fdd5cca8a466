// safetensors.h — reads the format in which Hugging Face stores weights: an 8-byte length, a JSON header,
// then the tensors.
//
// The content of the files is not trusted: whatever it is, parsing ends with a result or an error.
//
// Thread safety: parse_safetensors() and parse_shard_index() are pure functions; any thread. Error: bad_file,
// with the file's name in the message.
//
// Invariants of a parsed file:
//   1. Every tensor's bytes are inside the file. Their number is the product of its shape and element size.
//   2. Tensors do not overlap and leave no gap: together they are all of the file after the header.
//   3. No name occurs twice, in one file or in two shards.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/model/load/checkpoint.h"

namespace weir::core {

// `file`: content of the whole file, to which the result refers. `what`: its name, for errors. `fetch`:
// brings what is looked at into memory.
result<tensor_map> parse_safetensors(std::span<const std::byte> file, std::string_view what,
                                     const fetch_bytes& fetch = {});

// Parses model.safetensors.index.json: the shard of each tensor. A shard is a file name, never a path.
result<std::map<std::string, std::string>> parse_shard_index(std::string_view text, std::string_view what);

// All tensors of a model directory: of model.safetensors if it exists, else of model.safetensors.index.json
// and its shards.
result<checkpoint> open_safetensors(const std::string& dir);

}  // namespace weir::core
