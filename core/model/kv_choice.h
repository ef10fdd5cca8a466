// kv_choice.h — the type in which a model's keys and values are stored: the choice that --kv-type makes, and
// the type that it gives on a backend.
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

// The type that the single operations of `on` store: f32 for auto. A decoder of the backend has a type of its
// own, which only auto allows (kernels/decoder.h). Error: invalid_param where `on` has no such type.
result<kernels::kv_type> kv_type_on(const kernels::backend& on, kv_choice asked);

}  // namespace weir::core
