// token_ids.h — reads eos_token_id and bos_token_id, which are one id, a list of ids, or null.
#pragma once

#include <string_view>
#include <vector>

#include "core/model/load/strict_json.h"
#include "core/token.h"

namespace weir::core {

// The ids of a key; empty if it is missing or null. An id outside the vocabulary is recorded as an error in
// `in`.
std::vector<token_id> read_token_ids(json_reader& in, std::string_view key, std::uint32_t vocab_size);

}  // namespace weir::core
