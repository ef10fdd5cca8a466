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

result<kernels::kv_type> kv_type_on(const kernels::backend& on, kv_choice asked) {
  if (!asked) return kernels::kv_type::f32;
  if (on.stores_kv && on.stores_kv(on.self, *asked)) return *asked;
  return bad_param("kv-type",
                   "--kv-type {}: {} stores keys and values in the type of the weights, which is auto; cpu "
                   "and reference take {}",
                   kernels::name(*asked), on.name, kernels::name(*asked));
}

}  // namespace weir::core
