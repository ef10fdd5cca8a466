// converted_experts.h — the experts of a model directory as llama.cpp's converters put them into a GGUF file:
// one tensor of all experts for each of gate, up and down. For converted_gguf.h.
#pragma once

#include <map>
#include <regex>
#include <string>
#include <vector>

namespace weir::tests {

struct float_tensor {
  std::vector<std::uint64_t> shape;  // outermost dimension first
  std::vector<float> values;
};
using float_tensors = std::map<std::string, float_tensor>;

namespace detail {

// [a, b, c] as [a, c, b].
inline float_tensor turned(const float_tensor& t) {
  const std::size_t a = t.shape[0], b = t.shape[1], c = t.shape[2];
  float_tensor out{{a, c, b}, std::vector<float>(t.values.size())};
  for (std::size_t i = 0; i < a; ++i)
    for (std::size_t j = 0; j < b; ++j)
      for (std::size_t k = 0; k < c; ++k) out.values[(i * c + k) * b + j] = t.values[(i * b + j) * c + k];
  return out;
}

// Takes `count` rows of each expert out of a tensor [experts, rows, …]: row `first` and every `step`-th
// behind it.
inline float_tensor rows_of(const float_tensor& t, std::size_t first, std::size_t step, std::size_t count) {
  const std::size_t rows = t.shape[1], wide = t.values.size() / (t.shape[0] * rows);
  float_tensor out{t.shape, {}};
  out.shape[1] = count;
  for (std::size_t e = 0; e < t.shape[0]; ++e)
    for (std::size_t r = 0; r < count; ++r) {
      const auto at = t.values.begin() + static_cast<std::ptrdiff_t>((e * rows + first + r * step) * wide);
      out.values.insert(out.values.end(), at, at + static_cast<std::ptrdiff_t>(wide));
    }
  return out;
}

}  // namespace detail

// Puts tensors of experts under names as "blk.3.ffn_gate_exps.weight". `interleaved`: gpt-oss's form, whose
// inputs come first and whose gate and up alternate.
inline float_tensors take_experts(float_tensors& all, bool interleaved) {
  static const std::regex one(R"(model\.layers\.(\d+)\..*\.experts\.(\d+)\.(\w+)\.weight)"),
      merged(R"(model\.layers\.(\d+)\.(?:mlp\.experts|block_sparse_moe)\.([a-z_]+?)(\.weight|_bias)?)");
  static const std::map<std::string, std::string> parts{{"w1", "gate"},    {"w3", "up"},
                                                        {"w2", "down"},    {"gate_proj", "gate"},
                                                        {"up_proj", "up"}, {"down_proj", "down"}};
  std::map<std::string, std::map<int, float_tensor>> by_part;
  float_tensors out;
  for (auto it = all.begin(); it != all.end();) {
    std::smatch m;
    const auto& [name, t] = *it;
    if (std::regex_match(name, m, one)) {
      by_part["blk." + m.str(1) + ".ffn_" + parts.at(m.str(3)) + "_exps.weight"][std::stoi(m.str(2))] = t;
    } else if (std::regex_match(name, m, merged) && t.shape.size() >= 2 && m.str(2) != "gate") {
      const std::string at = "blk." + m.str(1) + ".ffn_", kind = m.str(3) == "_bias" ? "bias" : "weight";
      const float_tensor whole = interleaved && t.shape.size() == 3 ? detail::turned(t) : t;
      const std::size_t half = whole.shape[1] / 2;
      if (m.str(2) == "gate_up_proj" || m.str(2) == "input_linear") {
        out[at + "gate_exps." + kind] = detail::rows_of(whole, 0, interleaved ? 2 : 1, half);
        out[at + "up_exps." + kind] =
            detail::rows_of(whole, interleaved ? 1 : half, interleaved ? 2 : 1, half);
      } else {
        out[at + "down_exps." + kind] = whole;
      }
    } else {
      ++it;
      continue;
    }
    it = all.erase(it);
  }
  for (const auto& [name, experts] : by_part) {
    float_tensor& to = out[name];
    to.shape = experts.begin()->second.shape;
    to.shape.insert(to.shape.begin(), experts.size());
    for (const auto& [number, t] : experts)
      to.values.insert(to.values.end(), t.values.begin(), t.values.end());
  }
  return out;
}

}  // namespace weir::tests
