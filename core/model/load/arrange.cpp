#include "core/model/load/arrange.h"

#include <algorithm>
#include <array>
#include <map>

namespace weir::core {
namespace {

struct prefix {
  std::string_view there, here;
};
// The longest that fits comes first.
constexpr std::array prefixes{
    prefix{"model.language_model.", "model."},
    prefix{"language_model.model.", "model."},
    prefix{"language_model.lm_head.", "lm_head."},
};

std::string_view passed_over(std::string_view name) {
  for (const std::string_view each : passed_over_prefixes())
    if (name.starts_with(each)) return each;
  return {};
}

// The name in the files of a tensor that is called `name` here.
std::string in_files(std::string_view name, const prefix& of_model, bool own_head) {
  if (name.starts_with(of_model.here))
    return std::string(of_model.there) + std::string(name.substr(of_model.here.size()));
  return own_head && name.starts_with("lm_head.") ? "language_model." + std::string(name) : std::string(name);
}

}  // namespace

result<std::vector<std::string>> strip_wrapper(checkpoint& all, const family& f) {
  std::vector<std::string> notes;
  if (!f.wrapped) return notes;
  std::map<std::string, std::size_t, std::less<>> left;
  const prefix* used = nullptr;
  const auto done = all.rename([&](std::string_view name) -> std::string {
    if (const std::string_view other = passed_over(name); !other.empty()) {
      ++left[std::string(other)];
      return {};
    }
    for (const prefix& p : prefixes)
      if (name.starts_with(p.there)) {
        if (p.here == "model.") used = &p;
        return std::string(p.here) + std::string(name.substr(p.there.size()));
      }
    return std::string(name);
  });
  if (!done) return done.error();
  if (used) {
    const bool own_head = used->there.starts_with("language_model.");
    all.call_by([used = *used, own_head](std::string_view name) { return in_files(name, used, own_head); },
                "config.json");
  }
  for (const auto& [name, count] : left)
    notes.push_back(
        fmt::format("{} tensors '{}…' are not of the text model and are passed over", count, name));
  return notes;
}

result<void> order_heads(checkpoint& all, const model_config& c) {
  if (!c.stored.side_by_side) return {};
  for (std::uint32_t i = 0; i < c.layers(); ++i) {
    const kernels::attention_mixer& a = c.shape.layers[i].mixer;
    if (a.rotary < 0) continue;
    const std::uint32_t rows = c.ropes[static_cast<std::size_t>(a.rotary)].turned(a.head_dim);
    const std::string at = fmt::format("model.layers.{}.self_attn.", i);
    if (all.find(at + "qkv_proj.weight"))
      return make_error(errc::not_supported,
                        "tensor '{}qkv_proj.weight': fused heads that turn neighbours are not supported yet",
                        all.spelled(at));
    for (const char* kind : {"_proj.weight", "_proj.bias", "_norm.weight"})
      for (const auto& [name, heads] : {std::pair{"q", a.heads}, std::pair{"k", a.kv_heads}}) {
        if (kind[1] == 'n' && a.norms != kernels::head_norms::own) continue;
        if (auto ok = all.pair_rows(at + name + kind, heads, rows); !ok) return ok;
      }
  }
  return {};
}

}  // namespace weir::core
