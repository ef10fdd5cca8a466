#include "core/model/load/expert_names.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace weir::core {
namespace {

constexpr std::array spellings{
    expert_spelling{"block_sparse_moe.gate.", "mlp.gate."},
    expert_spelling{"block_sparse_moe.router.layer.", "mlp.gate."},
    expert_spelling{"mlp.router.", "mlp.gate."},
    expert_spelling{"block_sparse_moe.e_score_correction_bias", "mlp.gate.e_score_correction_bias"},
    expert_spelling{"mlp.moe_statics.e_score_correction_bias", "mlp.gate.e_score_correction_bias"},
    expert_spelling{"block_sparse_moe.experts.#.w1.", "mlp.experts.#.gate_proj."},
    expert_spelling{"block_sparse_moe.experts.#.w3.", "mlp.experts.#.up_proj."},
    expert_spelling{"block_sparse_moe.experts.#.w2.", "mlp.experts.#.down_proj."},
    expert_spelling{"block_sparse_moe.input_linear.", "mlp.experts.gate_up_proj."},
    expert_spelling{"block_sparse_moe.output_linear.", "mlp.experts.down_proj."},
    expert_spelling{"mlp.gate.e_score_correction_bias.bias", "mlp.gate.e_score_correction_bias"},
    expert_spelling{"self_attn.sinks.weight", "self_attn.sinks"},
    expert_spelling{"mlp.shared_experts.", "mlp.shared_expert."},
    expert_spelling{"shared_mlp.input_linear.", "mlp.shared_expert.gate_up_proj."},
    expert_spelling{"shared_mlp.output_linear.", "mlp.shared_expert.down_proj."},
};

struct merged_ending {
  std::string_view text;
  merged_kind kind;
};
constexpr std::array endings{
    merged_ending{"", merged_kind::weight},        merged_ending{".weight", merged_kind::weight},
    merged_ending{"_bias", merged_kind::bias},     merged_ending{".bias", merged_kind::bias},
    merged_ending{"_blocks", merged_kind::blocks}, merged_ending{"_scales", merged_kind::scales},
};
constexpr std::array<std::string_view, 4> parts{"gate_up_proj", "gate_proj", "up_proj", "down_proj"};

std::size_t digits(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

// The length of the beginning of `rest` that fits `pattern`, and the number in it; 0: it does not fit.
struct match {
  std::size_t length = 0;
  std::string_view number;
};
match match_of(std::string_view rest, std::string_view pattern) {
  const std::size_t at = pattern.find('#');
  if (at == pattern.npos) return {rest.starts_with(pattern) ? pattern.size() : 0, {}};
  if (!rest.starts_with(pattern.substr(0, at))) return {};
  const std::size_t n = digits(rest.substr(at));
  if (n == 0 || !rest.substr(at + n).starts_with(pattern.substr(at + 1))) return {};
  return {pattern.size() - 1 + n, rest.substr(at, n)};
}

}  // namespace

std::optional<layer_name> parse_layer_name(std::string_view name, std::string_view layers) {
  if (!name.starts_with(layers)) return std::nullopt;
  layer_name out;
  const std::string_view rest = name.substr(layers.size());
  const auto [end, ec] = std::from_chars(rest.data(), rest.data() + rest.size(), out.layer);
  if (ec != std::errc{} || end == rest.data() + rest.size() || *end != '.') return std::nullopt;
  out.rest = rest.substr(static_cast<std::size_t>(end - rest.data()) + 1);
  return out;
}

bool matches(std::string_view rest, std::string_view pattern) { return match_of(rest, pattern).length > 0; }

std::string respelled(std::string_view rest, std::string_view from, std::string_view to) {
  const match m = match_of(rest, from);
  std::string out(to);
  if (const std::size_t at = out.find('#'); at != out.npos) out.replace(at, 1, m.number);
  return out.append(rest.substr(m.length));
}

const expert_spelling* spelling_in_files(std::string_view rest) {
  const auto* found =
      std::ranges::find_if(spellings, [&](const expert_spelling& s) { return matches(rest, s.there); });
  return found == spellings.end() ? nullptr : found;
}

std::optional<merged_experts> parse_merged(std::string_view rest) {
  constexpr std::string_view experts = "mlp.experts.";
  if (!rest.starts_with(experts)) return std::nullopt;
  rest.remove_prefix(experts.size());
  for (const std::string_view part : parts) {
    if (!rest.starts_with(part)) continue;
    for (const merged_ending& e : endings)
      if (rest.substr(part.size()) == e.text) return merged_experts{part, e.kind};
  }
  return std::nullopt;
}

std::string name_in_files(std::string_view name, const std::vector<const expert_spelling*>& used,
                          const std::vector<std::pair<std::string, std::string>>& merged) {
  const auto parsed = parse_layer_name(name);
  if (!parsed) return std::string(name);
  const std::string_view front = name.substr(0, name.size() - parsed->rest.size());
  std::string rest(parsed->rest);
  for (const auto& [there, here] : merged)
    if (matches(rest, here)) {
      rest = there;
      break;
    }
  const expert_spelling* longest = nullptr;
  for (const expert_spelling* s : used)
    if (matches(rest, s->here) && (!longest || s->here.size() > longest->here.size())) longest = s;
  if (longest) rest = respelled(rest, longest->here, longest->there);
  return std::string(front) + rest;
}

}  // namespace weir::core
