#include "core/model/load/exl2.h"

#include <algorithm>

#include "kernels/tensor.h"

namespace weir::core {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 block = 32;  // columns that share a scale

bool is_width(u32 bits) { return bits == 8 || (bits >= 2 && bits <= 6); }

// The inputs in the order of the file, from the place of each input; empty if `places` is no permutation.
std::vector<u32> sorted_inputs(std::span<const u32> places) {
  const std::size_t count = places.size();
  std::vector<u32> inputs(count, static_cast<u32>(count));
  for (std::size_t k = 0; k < count; ++k) {
    if (places[k] >= count || inputs[places[k]] != count) return {};
    inputs[places[k]] = static_cast<u32>(k);
  }
  return inputs;
}

// Reads group `g`, without its columns. `left`: number of inputs that are in none of the groups before.
result<exl2_group> read_group(std::span<const std::uint16_t> groups, std::size_t g, u64 left, u64 words,
                              std::string_view linear) {
  const auto wrong = [&](std::string_view what) {
    return make_error(errc::bad_file, "tensor '{}.q_groups': group {} {}", linear, g, what);
  };
  const bool last = 2 * g + 2 == groups.size();
  const u32 bits = groups[2 * g];
  const u64 first = groups[2 * g + 1], end = last ? words : groups[2 * g + 3];
  if (!is_width(bits)) return wrong(fmt::format("has codes of {} bits", bits));
  if (g > 0 && bits > groups[2 * g - 2]) return wrong("has wider codes than the group before it");
  if (g == 0 && first != 0) return wrong(fmt::format("begins at row {} of q_weight, not at 0", first));
  if (end <= first || end > words)
    return wrong(fmt::format("has rows {} to {} of q_weight, which has {}", first, end, words));
  const u64 room = (end - first) * 32 / bits, inputs = last ? left : room;
  if (!last && (end - first) * 32 % bits != 0) return wrong("ends inside a code");
  if (inputs == 0 || inputs > left || (inputs * bits + 31) / 32 != end - first)
    return wrong(fmt::format("has {} rows of q_weight, but {} inputs are left for it", end - first, left));
  return exl2_group{bits, static_cast<u32>(first), static_cast<u32>(inputs), 0, 0};
}

}  // namespace

result<exl2_layout> lay_out_exl2(std::span<const std::uint16_t> groups, std::span<const u32> places,
                                 u64 words, std::string_view linear) {
  if (groups.empty() || groups.size() % 2 != 0)
    return make_error(errc::bad_file, "tensor '{}.q_groups' has {} numbers, which are no pairs", linear,
                      groups.size());
  const std::vector<u32> sorted = sorted_inputs(places);
  if (sorted.empty())
    return make_error(errc::bad_file, "tensor '{}.q_invperm' is no permutation of {} inputs", linear,
                      places.size());
  exl2_layout out;
  std::vector<u32> inputs;
  std::size_t used = 0;
  for (std::size_t g = 0; g < groups.size() / 2; ++g) {
    auto group = read_group(groups, g, sorted.size() - used, words, linear);
    if (!group) return group.error();
    group->first_column = static_cast<u32>(inputs.size());
    group->columns = (group->inputs + block - 1) / block * block;
    inputs.insert(inputs.end(), sorted.begin() + static_cast<std::ptrdiff_t>(used),
                  sorted.begin() + static_cast<std::ptrdiff_t>(used + group->inputs));
    inputs.resize(group->first_column + group->columns, 0);
    out.group_of_block.resize(inputs.size() / block, static_cast<u32>(g));
    used += group->inputs;
    out.groups.push_back(*group);
  }
  out.inputs = std::make_shared<const std::vector<u32>>(std::move(inputs));
  return out;
}

float exl2_scale(std::uint8_t four, float largest) noexcept {
  const float root = static_cast<float>(four + 1);
  const float unit = kernels::from_f16(kernels::to_f16(largest / 256));
  return kernels::from_f16(kernels::to_f16(root * root * unit));
}

}  // namespace weir::core
