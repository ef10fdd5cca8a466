// mixture.h — what config.json says about mixtures of experts: how many there are, how a router chooses among
// them, and which layers are mixtures. The keys are those of several families, and mean the same in each.
//
// Thread safety: pure functions; any thread. Errors name the key: bad_file; not_supported for a setting that
// changes the arithmetic and that weir does not have.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/model/families.h"
#include "core/model/load/strict_json.h"
#include "kernels/model_shape.h"

namespace weir::core {

// Larger than any model's sizes, and so small that a product of two fits well into 64 bits.
inline constexpr std::uint32_t max_size = 1u << 24;

// Names of the number of experts, which mean the same.
inline constexpr std::array expert_count_keys{"num_experts", "num_local_experts", "n_routed_experts",
                                              "moe_num_experts"};

// The feed-forward of layers that are mixtures; `dense`: that of the others. nullopt: the model has no
// experts. The family's `keys` say which settings it has. `hidden`: the model's width.
std::optional<kernels::feed_forward> read_mixture(json_reader& in, const family& f,
                                                  const kernels::feed_forward& dense, std::uint32_t hidden);

// Which of the layers are mixtures, in a model that has experts.
std::vector<bool> read_sparse_layers(json_reader& in, std::uint32_t layers);

// The number of layers behind the model's own that draft tokens. They are not computed.
std::uint32_t read_draft_layers(json_reader& in);

// Whether a row of families has a key that changes the arithmetic.
bool has_key(const family& f, std::string_view key);

}  // namespace weir::core
