#include "core/model/load/quantised.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "core/model/load/fill.h"
#include "core/model/load/group_order.h"
#include "core/model/load/quantised_rows.h"

namespace weir::core {
namespace {

using kernels::dtype;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using shape = std::vector<u64>;

constexpr u64 most_side = 1u << 24;  // of a linear, as of any size in a config

u64 up(u64 n, u64 unit) { return (n + unit - 1) / unit; }

// Takes the tensors of one linear from a checkpoint and checks them.
class joiner {
 public:
  joiner(checkpoint& all, const quant_config& q, std::string name) : all_(all), name_(std::move(name)) {
    l_.config = q;
  }

  result<void> join() {
    switch (l_.config.form) {
      case quant_form::gptq:
      case quant_form::awq:
        take_groups_first();
        break;
      case quant_form::packed:
        take_packed();
        break;
      case quant_form::exl2:
        take_exl2();
        break;
      case quant_form::mxfp4:
        take_mxfp4();
        break;
      default:
        take_bytes();
    }
    if (failure_) return *failure_;
    stored_tensor whole{kernels::name(l_.type), {l_.outputs, l_.inputs}, {}};
    whole.inputs = l_.order;
    whole.row_unit = l_.config.form == quant_form::exl2 ? exl2_row_unit : 1;
    whole.made_by = make_converted(std::move(l_));
    return all_.replace(used_, name_ + ".weight", std::move(whole));
  }

 private:
  // gptq, awq.
  void take_groups_first() {
    const bool gptq = l_.config.form == quant_form::gptq;
    const u32 bits = l_.config.bits;
    if (!take_codes(".qweight", "I32")) return;
    const u64 rows = l_.codes.shape[0], columns = l_.codes.shape[1];
    set_sides(gptq ? columns : columns * 32 / bits, gptq ? rows * 32 / bits : rows);
    set_groups();
    take(".qzeros", l_.zeros, {"I32"}, {l_.groups, up(u64{l_.outputs} * bits, 32)});
    take(".scales", l_.scales, {"F16", "BF16", "F32"}, {l_.groups, l_.outputs});
    if (gptq) take_order(".g_idx");
  }

  void take_packed() {
    if (!take_codes(".weight_packed", "I32")) return;
    stored_tensor said;
    take(".weight_shape", said, {"I64"}, {2});
    if (failure_) return;
    u64 sides[2] = {};
    if (auto ok = all_.read(said, 0, std::as_writable_bytes(std::span(sides))); !ok) return keep(ok.error());
    set_sides(sides[0], sides[1], true);
    set_groups();
    const shape wanted{l_.outputs, up(u64{l_.inputs} * l_.config.bits, 32)};
    if (l_.codes.shape != wanted) return wrong_shape(".weight_packed", l_.codes, wanted);
    take(".weight_scale", l_.scales, {"BF16", "F16", "F32"}, {l_.outputs, l_.groups});
    if (all_.find(name_ + ".weight_zero_point"))
      take(".weight_zero_point", l_.zeros, {"I32"}, {up(u64{l_.outputs} * l_.config.bits, 32), l_.groups});
    take_order(".weight_g_idx");
  }

  void take_exl2() {
    if (!take_codes(".q_weight", "I32")) return;
    stored_tensor groups, inverse;
    take_vector(".q_groups", groups, "I16");
    take_vector(".q_invperm", inverse, "I32");
    if (failure_) return;
    set_sides(l_.codes.shape[1], inverse.shape[0], true);
    if (failure_) return;
    std::vector<std::uint16_t> g(groups.shape[0]);
    std::vector<u32> places(l_.inputs);
    if (!read_all(groups, g) || !read_all(inverse, places)) return;
    auto layout = lay_out_exl2(g, places, l_.codes.shape[0], name_);
    if (!layout) return keep(layout.error());
    l_.exl2 = std::move(*layout);
    l_.order = l_.exl2.inputs;
    l_.groups = static_cast<u32>(l_.exl2.groups.size());
    l_.type = l_.exl2.groups.front().bits > 4 ? dtype::q8_0 : dtype::q4_0;
    if (l_.outputs % exl2_row_unit != 0)
      return fail(errc::bad_file,
                  fmt::format("tensor '{}' {}: {} outputs are no multiple of {}", l_.codes_name,
                              l_.codes.shape_text(), l_.outputs, exl2_row_unit));
    take(".q_scale", l_.scales, {"I32"}, {l_.groups, l_.outputs / 8});
    take(".q_scale_max", l_.largest, {"F16"}, {l_.groups});
    if (!all_.find(name_ + ".q_perm")) return;
    stored_tensor order;
    take(".q_perm", order, {"I32"}, {l_.inputs});
    std::vector<u32> inputs(l_.inputs);
    if (failure_ || !read_all(order, inputs)) return;
    for (u32 k = 0; k < l_.inputs; ++k)
      if (inputs[k] >= l_.inputs || places[inputs[k]] != k)
        return fail(errc::bad_file, fmt::format("tensor '{}.q_perm' is not the inverse of q_invperm", name_));
  }

  void take_mxfp4() {
    if (!take_codes(".weight_packed", "U8")) return;
    set_sides(l_.codes.shape[0], l_.codes.shape[1] * 2);
    l_.config.group = 32;
    set_groups();
    take(".weight_scale", l_.scales, {"U8"}, {l_.outputs, l_.groups});
    l_.type = dtype::mxfp4;
  }

  void take_bytes() {
    const bool floats = l_.config.form == quant_form::fp8;
    if (!take_codes(".weight", floats ? "F8_E4M3" : "I8")) return;
    set_sides(l_.codes.shape[0], l_.codes.shape[1]);
    const u64 tall = l_.config.block_rows;
    l_.config.group = l_.config.block_columns;
    set_groups();
    l_.type = floats ? dtype::fp8 : dtype::int8;
    const char* suffix = all_.find(name_ + ".weight_scale_inv") ? ".weight_scale_inv" : ".weight_scale";
    const stored_tensor* scales = all_.find(name_ + suffix);
    // One scale for all has the shape [], [1] or [1, 1]; one for each output may have one dimension.
    const bool one = scales && tall == 0 && std::ranges::all_of(scales->shape, [](u64 n) { return n == 1; });
    shape wanted{tall ? up(l_.outputs, tall) : l_.outputs, l_.groups};
    if (scales && tall == 0 && (one || scales->shape == shape{l_.outputs})) wanted = scales->shape;
    take(suffix, l_.scales, {"F32", "BF16", "F16"}, wanted);
  }

  bool take_codes(const char* suffix, const char* type) {
    l_.codes_name = name_ + suffix;
    const stored_tensor* t = all_.find(l_.codes_name);
    if (t->dtype != type)
      return fail(errc::bad_file, fmt::format("tensor '{}' is {}, not {}", l_.codes_name, t->dtype, type)),
             false;
    if (t->shape.size() == 3)
      return fail(errc::not_supported,
                  fmt::format("tensor '{}' {}: quantised experts in one tensor are not supported yet",
                              l_.codes_name, t->shape_text())),
             false;
    if (t->shape.size() != 2)
      return fail(errc::bad_file, fmt::format("tensor '{}' {} is no matrix", l_.codes_name, t->shape_text())),
             false;
    l_.codes = *t;
    used_.push_back(l_.codes_name);
    return true;
  }

  // Takes a vector of any size.
  void take_vector(const char* suffix, stored_tensor& to, const char* type) {
    const std::string name = name_ + suffix;
    const stored_tensor* t = failure_ ? nullptr : all_.find(name);
    if (failure_) return;
    if (!t)
      return fail(errc::bad_file,
                  fmt::format("tensor '{}' is missing, which '{}' needs", name, l_.codes_name));
    if (t->shape.size() != 1)
      return fail(errc::bad_file, fmt::format("tensor '{}' {} is no vector", name, t->shape_text()));
    take(suffix, to, {type}, t->shape);
  }

  // Reads the whole of a tensor that was taken. Returns false if there is a failure.
  template <class T>
  bool read_all(const stored_tensor& t, std::vector<T>& to) {
    if (auto ok = all_.read(t, 0, std::as_writable_bytes(std::span(to))); !ok) keep(ok.error());
    return !failure_;
  }

  void take(const char* suffix, stored_tensor& to, std::initializer_list<std::string_view> types,
            const shape& wanted) {
    if (failure_) return;
    const std::string name = name_ + suffix;
    const stored_tensor* t = all_.find(name);
    if (!t)
      return fail(errc::bad_file, fmt::format("tensor '{}' [{}] is missing, which '{}' needs", name,
                                              fmt::join(wanted, ", "), l_.codes_name));
    if (std::ranges::find(types, t->dtype) == types.end())
      return fail(errc::bad_file,
                  fmt::format("tensor '{}' is {}, not {}", name, t->dtype, fmt::join(types, " or ")));
    if (t->shape != wanted) return wrong_shape(suffix, *t, wanted);
    to = *t;
    used_.push_back(name);
  }

  // `fills_up`: inputs need not fill whole blocks.
  void set_sides(u64 outputs, u64 inputs, bool fills_up = false) {
    if (outputs == 0 || inputs == 0 || outputs > most_side || inputs > most_side)
      return fail(errc::bad_file,
                  fmt::format("tensor '{}' stands for [{}, {}] weights: sides must be 1 to {}", l_.codes_name,
                              outputs, inputs, most_side));
    if (inputs % 32 != 0 && !fills_up)
      return fail(errc::not_supported,
                  fmt::format("tensor '{}': {} inputs, which are no multiple of 32, are not supported yet",
                              l_.codes_name, inputs));
    l_.outputs = static_cast<u32>(outputs);
    l_.inputs = static_cast<u32>(inputs);
  }

  // Sets the groups, and the type of blocks for codes that are whole numbers.
  void set_groups() {
    if (failure_) return;
    l_.group = l_.config.group ? l_.config.group : l_.inputs;
    l_.groups = static_cast<u32>(up(l_.inputs, l_.group));
    const bool wide = l_.groups == 1 || l_.group % 128 == 0;
    l_.type = l_.config.bits > 4 ? dtype::int8 : wide ? dtype::int4 : dtype::int4_32;
  }

  // Sets the order of the columns, from the group of each input.
  void take_order(const char* suffix) {
    if (failure_) return;
    const std::string name = name_ + suffix;
    std::vector<u32> groups(l_.inputs);
    if (all_.find(name) || (l_.config.indexed && l_.groups > 1)) {
      stored_tensor index;
      take(suffix, index, {"I32"}, {l_.inputs});
      if (failure_ || !read_all(index, groups)) return;
    } else {
      for (u32 k = 0; k < l_.inputs; ++k) groups[k] = k / l_.group;
    }
    auto order = order_of_groups(groups, l_.group, name);
    if (!order) return keep(order.error());
    while (order->size() % 32 != 0) order->push_back(0);
    bool moved = order->size() != l_.inputs;
    for (u32 k = 0; k < l_.inputs; ++k) moved |= (*order)[k] != k;
    if (moved) l_.order = std::make_shared<const std::vector<u32>>(std::move(*order));
  }

  void wrong_shape(const char* suffix, const stored_tensor& t, const shape& wanted) {
    fail(errc::bad_file,
         fmt::format("tensor '{}{}' is {} in the file, but '{}' and quantization_config imply [{}]", name_,
                     suffix, t.shape_text(), l_.codes_name, fmt::join(wanted, ", ")));
  }
  void fail(errc code, std::string message) { keep({code, std::move(message), {}}); }
  void keep(error e) {
    if (!failure_) failure_ = std::move(e);
  }

  checkpoint& all_;
  std::string name_;
  quantised_linear l_;
  std::vector<std::string> used_;
  std::optional<error> failure_;
};

// The end of the name of a linear's codes, and the type that tells codes from plain weights; empty: any type.
std::pair<std::string_view, std::string_view> codes_of(quant_form form) {
  switch (form) {
    case quant_form::gptq:
    case quant_form::awq:
      return {".qweight", ""};
    case quant_form::packed:
    case quant_form::mxfp4:
      return {".weight_packed", ""};
    case quant_form::exl2:
      return {".q_weight", ""};
    case quant_form::whole_ints:
      return {".weight", "I8"};
    default:
      return {".weight", "F8_E4M3"};
  }
}

bool implies_bias(const model_config& c, std::string_view linear) {
  if (linear.find(".self_attn.") == linear.npos) return c.stored.mlp_bias;
  return linear.ends_with(".o_proj") ? c.stored.out_bias : c.stored.qkv_bias;
}

// Whether `linear` has a bias of zeros that the model does not imply. Older writers of gptq add such a bias
// to every linear.
result<bool> is_idle_bias(const checkpoint& all, const std::string& linear, const model_config& c) {
  const stored_tensor* bias = all.find(linear + ".bias");
  if (!bias || c.quantised.form != quant_form::gptq || implies_bias(c, linear)) return false;
  std::vector<std::byte> bytes(bias->bytes.size());
  if (auto ok = all.read(*bias, 0, bytes); !ok) return ok.error();
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

result<void> join_quantised(checkpoint& all, const model_config& c) {
  if (c.quantised.form == quant_form::plain || c.quantised.form == quant_form::mxfp4_experts) return {};
  const auto [suffix, type] = codes_of(c.quantised.form);
  std::vector<std::string> linears, idle;
  for (const auto& [name, t] : all.tensors()) {
    if (name.ends_with(suffix) && (type.empty() || t.dtype == type))
      linears.push_back(name.substr(0, name.size() - suffix.size()));
    for (const char* other : {".input_scale", ".k_scale", ".v_scale"})
      if (name.ends_with(other)) idle.push_back(name);
  }
  for (const std::string& linear : linears) {
    const auto zeros = is_idle_bias(all, linear, c);
    if (!zeros) return zeros.error();
    if (*zeros) idle.push_back(linear + ".bias");
    if (auto joined = joiner(all, c.quantised, linear).join(); !joined) return joined;
  }
  all.remove(idle);
  return {};
}

}  // namespace weir::core
