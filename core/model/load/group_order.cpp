#include "core/model/load/group_order.h"

#include <algorithm>

namespace weir::core {

result<std::vector<std::uint32_t>> order_of_groups(std::span<const std::uint32_t> groups, std::uint32_t size,
                                                   std::string_view tensor) {
  const std::size_t inputs = groups.size(), count = (inputs + size - 1) / size;
  std::vector<std::size_t> members(count);
  for (std::size_t k = 0; k < inputs; ++k) {
    if (groups[k] >= count)
      return make_error(errc::bad_file, "tensor '{}': input {} is in group {} of {}", tensor, k, groups[k],
                        count);
    ++members[groups[k]];
  }
  std::vector<std::size_t> next(count);
  for (std::size_t g = 0; g < count; ++g) {
    next[g] = g * size;
    const std::size_t wanted = std::min<std::size_t>(size, inputs - g * size);
    if (members[g] != wanted)
      return make_error(errc::not_supported,
                        "tensor '{}': group {} has {} inputs, not {}; groups of unequal size are not "
                        "supported yet",
                        tensor, g, members[g], wanted);
  }
  std::vector<std::uint32_t> order(inputs);
  for (std::size_t k = 0; k < inputs; ++k) order[next[groups[k]]++] = static_cast<std::uint32_t>(k);
  return order;
}

}  // namespace weir::core
