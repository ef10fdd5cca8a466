#include "core/schedule/shares.h"

#include <algorithm>
#include <charconv>

namespace weir::core {

std::optional<double> parse_weight(std::string_view text) noexcept {
  double w = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), w);
  if (wrong != std::errc() || end != text.data() + text.size() || !is_weight(w)) return std::nullopt;
  return w;
}

void shares::charge(share_account& a, duration took, step_kind under_way) noexcept {
  const auto ns = static_cast<double>(std::max(took, duration::zero()).count());
  if (took > duration::zero()) a.latest_[static_cast<std::size_t>(a.under_way_)] = ns;
  a.line_ += std::max(ns, static_cast<double>(least_turn.count())) / a.weight_ - a.advance_;
  a.under_way_ = under_way;
  a.advance_ = under_way == step_kind::none ? 0 : a.latest_[static_cast<std::size_t>(under_way)] / a.weight_;
  a.line_ += a.advance_;
}

}  // namespace weir::core
