#include "core/model/load/gguf_rope.h"

#include <boost/json/array.hpp>
#include <cmath>

namespace weir::core {
namespace json = boost::json;
namespace {

constexpr std::string_view long_factors = "rope_factors_long.weight",
                           short_factors = "rope_factors_short.weight";
constexpr std::uint32_t most_tokens = 1u << 30;

json::array numbers(const std::vector<float>& from) {
  json::array out;
  for (const float x : from) out.push_back(double{x});
  return out;
}

class rope_writer {
 public:
  rope_writer(architecture_keys& in, const gguf_architecture& a, const gguf_heads& heads,
              const tensor_map& tensors, const read_tensor& read)
      : in_(in), a_(a), heads_(heads), tensors_(tensors), read_(read) {}

  json::object write() {
    const double theta = in_.number("rope.freq_base").value_or(10000);
    read_turned();
    json::object table = scaling();
    table["rope_theta"] = theta;
    if (a_.part_turns) table["partial_rotary_factor"] = part_that_turns();
    if (const double growth = in_.number("attention.temperature_scale").value_or(0); growth != 0) {
      table["llama_4_scaling_beta"] = growth;
      table["original_max_position_embeddings"] = original_context();
    }
    const double usual = a_.window_theta > 0 ? a_.window_theta : theta;
    const double in_window = in_.number("rope.freq_base_swa").value_or(usual);
    if (heads_.two_tables)
      return {{"full_attention", table},
              {"sliding_attention", json::object{{"rope_type", "default"}, {"rope_theta", in_window}}}};
    if (in_window != theta) in_.refuse("rope.freq_base_swa", "other than rope.freq_base");
    return table;
  }

 private:
  // How many elements of a head turn.
  void read_turned() {
    turned_ = in_.count("rope.dimension_count", most_tokens).value_or(heads_.head_dim);
    if (turned_ == heads_.head_dim) return;
    if (!a_.part_turns) return in_.refuse("rope.dimension_count", "other than key_length");
    if (turned_ == 0 || turned_ > heads_.head_dim || turned_ % 2 != 0)
      in_.reader().fail(
          errc::bad_file,
          fmt::format("{}: '{}' is {}, not an even number up to the {} elements of a head",
                      in_.reader().what(), in_.full("rope.dimension_count"), turned_, heads_.head_dim));
  }

  // Times the elements of a head it is turned_, rounded down.
  double part_that_turns() const {
    const double part = static_cast<double>(turned_) / heads_.head_dim;
    return heads_.head_dim * part < turned_ ? std::nextafter(part, 2.0) : part;
  }

  std::uint32_t original_context() {
    return in_.count("rope.scaling.original_context_length", most_tokens).value_or(heads_.context);
  }

  json::object scaling() {
    const auto type = in_.text("rope.scaling.type").value_or("");
    const bool listed = tensors_.contains(long_factors) || tensors_.contains(short_factors);
    if (type == "longrope" || (listed && type != "yarn")) return longrope();
    if (listed) in_.refuse("rope.scaling.type", fmt::format("yarn beside {}", long_factors));
    if (in_.number("rope.scaling.attn_factor").value_or(1) != 1)
      in_.refuse("rope.scaling.attn_factor", fmt::format("beside a rotation of type '{}'", type));
    const double old = in_.number("rope.scale_linear").value_or(0);
    double factor = in_.number("rope.scaling.factor").value_or(old);
    if (factor == 0) factor = 1;
    if (type == "yarn") return yarn(factor);
    if (!type.empty() && type != "none" && type != "linear") in_.refuse("rope.scaling.type", type);
    if (type == "none" || factor == 1) return {{"rope_type", "default"}};
    return {{"rope_type", "linear"}, {"factor", factor}};
  }

  json::object yarn(double factor) {
    json::object out{
        {"rope_type", "yarn"}, {"factor", factor}, {"original_max_position_embeddings", original_context()}};
    for (const auto& [key, config] : {std::pair{"rope.scaling.yarn_beta_fast", "beta_fast"},
                                      std::pair{"rope.scaling.yarn_beta_slow", "beta_slow"},
                                      std::pair{"rope.scaling.yarn_attn_factor", "attention_factor"}})
      if (const auto x = in_.number(key)) out[config] = *x;
    if (a_.exact_yarn) out["truncate"] = false;
    if (const double scale = in_.number("rope.scaling.yarn_log_multiplier").value_or(0); scale != 0) {
      out["mscale"] = 1;
      out["mscale_all_dim"] = scale;
    }
    if (in_.number("rope.scaling.yarn_ext_factor").value_or(1) != 1)
      in_.refuse("rope.scaling.yarn_ext_factor", "other than 1");
    return out;
  }

  json::object longrope() {
    const double attention = in_.number("rope.scaling.attn_factor").value_or(1);
    return {{"rope_type", "longrope"},
            {"original_max_position_embeddings", original_context()},
            {"attention_factor", attention},
            {"short_factor", factors(short_factors)},
            {"long_factor", factors(long_factors)}};
  }

  json::array factors(std::string_view name) {
    const auto values = read_rope_factors(tensors_, name, turned_ / 2, read_, in_.reader().what());
    if (values) return numbers(*values);
    in_.reader().fail(values.error().code, values.error().message);
    return {};
  }

  architecture_keys& in_;
  const gguf_architecture& a_;
  const gguf_heads& heads_;
  const tensor_map& tensors_;
  const read_tensor& read_;
  std::uint32_t turned_ = 0;
};

}  // namespace

json::object gguf_rope(architecture_keys& in, const gguf_architecture& a, const gguf_heads& heads,
                       const tensor_map& tensors, const read_tensor& read) {
  return rope_writer(in, a, heads, tensors, read).write();
}

result<std::vector<float>> read_rope_factors(const tensor_map& tensors, std::string_view name,
                                             std::size_t pairs, const read_tensor& read,
                                             std::string_view what) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) return make_error(errc::bad_file, "{}: tensor '{}' is missing", what, name);
  const stored_tensor& t = found->second;
  if (t.dtype != "F32" || t.shape.size() != 1 || t.shape[0] != pairs)
    return make_error(errc::bad_file, "{}: tensor '{}' is {} {}, not F32 [{}]", what, name, t.dtype,
                      t.shape_text(), pairs);
  std::vector<float> out(pairs);
  if (auto ok = read(t, std::as_writable_bytes(std::span(out))); !ok) return ok.error();
  for (const float x : out)
    if (!(std::isfinite(x) && x > 0))
      return make_error(errc::bad_file, "{}: tensor '{}' has {}, which is not above 0", what, name, x);
  return out;
}

}  // namespace weir::core
