// model_orders.h — orders to load, unload and swap models, as bodies of the routes under /v1/admin and of
// llama.cpp's /models/load and /models/unload.
//
// A field that is planned is refused by name with not_supported, an unknown one with invalid_param. `null` is
// as if a field were not there. Pure functions: any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/model_orders.h"
#include "core/error.h"
#include "core/model_limits.h"

namespace weir::net::orders {

inline constexpr std::size_t longest_name = 256;     // bytes
inline constexpr std::size_t longest_source = 4096;  // bytes
inline constexpr std::size_t most_devices = 64;
inline constexpr std::size_t most_out = 64;  // models that a swap takes out

using seconds = std::optional<std::chrono::nanoseconds>;

// The body of POST /v1/admin/models and /v1/admin/plan, and `in` of a swap.
struct load {
  std::string name;
  std::string source;                // empty: where the model of that name is
  std::vector<std::string> devices;  // empty: on the host with the fewest models
  std::optional<std::uint64_t> kv_tokens;
  std::optional<double> share;  // core::is_weight()
  core::model_limits limits;
  bool wait = true;  // the answer comes when the order is carried out
};
// `most_values`: most values and keys of its JSON (core/read_json.h); here and below.
core::result<load> parse_load(std::string_view body, std::size_t most_values = SIZE_MAX);

// The body of POST /v1/admin/models/{name}.
struct change {
  // terms: share and pinned; the model stays as it is otherwise
  enum class kind { load, unload, sleep, wake, terms } is = kind::load;
  seconds drain;                                            // of an unload or a sleep
  std::optional<actors::sleep_level> level;                 // of a sleep
  std::optional<double> share;                              // of a load or of the terms
  std::optional<bool> pinned;                               // of the terms
  core::model_limits limits;                                // of a load
  bool wait = true;
};
core::result<change> parse_change(std::string_view body, std::size_t most_values = SIZE_MAX);

// The body of POST /v1/admin/swap.
struct swap {
  std::vector<std::string> out;  // never empty
  load in;                       // in.wait is that of the swap
  seconds drain;
};
core::result<swap> parse_swap(std::string_view body, std::size_t most_values = SIZE_MAX);

// The model that the body of /models/load or /models/unload names.
core::result<std::string> parse_named(std::string_view body, std::size_t most_values = SIZE_MAX);

}  // namespace weir::net::orders
