#include "core/model/kv_choice.h"

namespace weir::core {

std::string kv_type_names() {
  std::string all = "auto";
  for (std::size_t i = 0; i < kernels::kv_type_count; ++i)
    all.append(i + 1 < kernels::kv_type_count ? ", " : " or ").append(kernels::all_kv_types[i].name);
  return all;
}

result<kv_choice> parse_kv_type(std::string_view text) {
  if (text == "auto") return kv_choice{};
  for (std::size_t i = 0; i < kernels::kv_type_count; ++i)
    if (text == kernels::all_kv_types[i].name) return kv_choice{static_cast<kernels::kv_type>(i)};
  return bad_param("kv-type", "--kv-type must be {}, not '{}'", kv_type_names(), text);
}

result<void> check_kv_type(const kernels::backend& on, kv_choice asked) {
  if (!asked) return {};
  if (on.stores_kv && on.stores_kv(on.self, *asked)) return {};
  std::string all = "auto";
  for (std::size_t i = 0; i < kernels::kv_type_count; ++i) {
    const auto type = static_cast<kernels::kv_type>(i);
    if (!on.decoder_stores_kv || !on.decoder_stores_kv(on.self, type)) continue;
    if (type == *asked) return {};
    all.append(", ").append(kernels::name(type));
  }
  return bad_param("kv-type",
                   "--kv-type {}: {} takes {}; cpu and reference take {}",
                   kernels::name(*asked), on.name, all, kernels::name(*asked));
}

}  // namespace weir::core
