// kv_choice.h — the type in which a model's keys and values are stored: the choice that --kv-type makes, and
// whether a backend has it.
//
// Thread safety: pure functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "kernels/ops.h"

namespace weir::core {

// nullopt: auto.
using kv_choice = std::optional<kernels::kv_type>;

// What the option takes, as a message lists it: auto, f32, ….
std::string kv_type_names();

// Parses auto or the name of a type. Error: invalid_param.
result<kv_choice> parse_kv_type(std::string_view text);

// Whether `on` stores this type for any model: by its single operations, for which auto is f32, or by a
// decoder (kernels/decoder.h), for which auto is a type of its own. Which of them a model has is known when
// its weights are (page_bytes in decoder_model.h). Error: invalid_param where `on` has no such type.
result<void> check_kv_type(const kernels::backend& on, kv_choice asked);

}  // namespace weir::core
