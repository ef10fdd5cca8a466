// expert_names.h — the names that files give to tensors of mixtures of experts, and those that
// mixture_weights.cpp looks for. Every expert has tensors of its own there, also where files have one tensor
// of all experts:
//
//   mlp.gate.weight, .bias, .e_score_correction_bias       the router
//   mlp.experts.N.gate_proj, up_proj or gate_up_proj, down_proj; .weight, .bias
//   mlp.shared_expert.gate_proj, up_proj or gate_up_proj, down_proj; .weight
//   mlp.shared_expert_gate.weight
//
// Thread safety: pure functions, immutable data; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::core {

// The beginning of a tensor's name behind "model.layers.N.", in files and here. '#' is the expert's number.
struct expert_spelling {
  std::string_view there, here;
};

// "model.layers.3.mlp.gate.weight": layer 3, and "mlp.gate.weight". nullopt: no tensor of a layer.
struct layer_name {
  std::uint32_t layer = 0;
  std::string_view rest;
};
std::optional<layer_name> parse_layer_name(std::string_view name, std::string_view layers = "model.layers.");

// The spelling of files that a name behind the layer's number has; null: the name is as it is here.
const expert_spelling* spelling_in_files(std::string_view rest);

// `rest` with the beginning `from` put in place of `to`. REQUIRES: it fits, as matches() says
bool matches(std::string_view rest, std::string_view pattern);
std::string respelled(std::string_view rest, std::string_view from, std::string_view to);

// A tensor of all experts: what it has of each, or how.
enum class merged_kind { weight, bias, blocks, scales };
struct merged_experts {
  std::string_view part;  // gate_up_proj, gate_proj, up_proj or down_proj
  merged_kind kind;
};
// nullopt: `rest` names no tensor of all experts.
std::optional<merged_experts> parse_merged(std::string_view rest);

// For errors: the name that files have for a name of here, where they use these spellings, and where they
// have tensors of all experts. Any other name stays as it is.
std::string name_in_files(std::string_view name, const std::vector<const expert_spelling*>& used,
                          const std::vector<std::pair<std::string, std::string>>& merged);

}  // namespace weir::core
