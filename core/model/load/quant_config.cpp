#include "core/model/load/quant_config.h"

#include <algorithm>

#include "core/model/load/strict_json.h"

namespace weir::core {
namespace json = boost::json;
namespace {

constexpr std::uint32_t most_columns = 1u << 24;

// Refuses any text but `only` in a member that may be missing.
void expect(json_reader& in, const char* key, std::string_view only) {
  if (const auto said = in.text(key); said && *said != only)
    not_supported(in, fmt::format("{} '{}'", key, *said));
}

// Reads the size of a group; 0, which means all inputs, where the member is -1, null or missing. A scale is
// for whole blocks of 32 inputs.
std::uint32_t read_group(json_reader& in, const char* key) {
  if (in.number(key).value_or(-1) == -1) return 0;
  const std::uint32_t group = in.count(key, most_columns).value_or(0);
  if (group % 32 != 0) not_supported(in, fmt::format("{} {}, which is no multiple of 32,", key, group));
  return group;
}

std::uint32_t read_bits(json_reader& in, const char* key, std::uint32_t least) {
  const std::uint32_t bits = in.required_count(key, 64).value_or(8);
  if (bits < least || bits > 8) not_supported(in, fmt::format("{} {}", key, bits));
  return bits;
}

// Reads the size of a block that shares a scale of fp8: the number of outputs and the number of inputs.
void read_block(json_reader& in, const char* key, quant_config& q) {
  const json::value* v = in.find(key);
  if (!v) return;
  const json::array* both = v->if_array();
  const auto at = [&](std::size_t i) -> std::uint32_t {
    json::error_code ec;
    const auto n = (*both)[i].is_number() ? (*both)[i].to_number<std::uint32_t>(ec) : 0;
    return ec ? 0 : n;
  };
  if (!both || both->size() != 2 || at(0) < 1 || at(1) < 1)
    return in.fail(errc::bad_file, fmt::format("{}: '{}' must be two whole numbers", in.what(), key));
  q.block_rows = at(0);
  q.block_columns = at(1);
  if (q.block_columns % 128 != 0 || q.block_rows > most_columns)
    not_supported(in, fmt::format("{} {}", key, json::serialize(*v)));
}

void read_gptq(json_reader& in, quant_config& q) {
  q.form = quant_form::gptq;
  q.bits = read_bits(in, "bits", 2);
  if (q.bits > 4 && q.bits < 8) not_supported(in, fmt::format("bits {}", q.bits));
  q.group = read_group(in, "group_size");
  const char* key = in.has("checkpoint_format") ? "checkpoint_format" : "format";
  const std::string format = in.text(key).value_or("gptq");
  if (format != "gptq" && format != "gptq_v2") not_supported(in, fmt::format("{} '{}'", key, format));
  q.less_one = format == "gptq";
  q.indexed = in.boolean("desc_act").value_or(false);
  expect(in, "pack_dtype", "int32");
  const json::value* rules = in.find("dynamic");
  if (!rules) return;
  const json::object* all = rules->if_object();
  if (!all) return in.fail(errc::bad_file, fmt::format("{}: 'dynamic' must be an object", in.what()));
  for (const auto& [rule, settings] : *all)  // "-:": modules that are not quantised
    if (!rule.starts_with("-:")) not_supported(in, fmt::format("dynamic rule '{}'", std::string_view(rule)));
}

void read_awq(json_reader& in, quant_config& q) {
  q.form = quant_form::awq;
  q.bits = read_bits(in, "bits", 2);
  if (q.bits != 4) not_supported(in, fmt::format("bits {}", q.bits));
  q.group = read_group(in, "group_size");
  const std::string version = in.text("version").value_or("gemm");
  if (version != "gemm" && version != "GEMM") not_supported(in, fmt::format("version '{}'", version));
  if (!in.boolean("zero_point").value_or(true)) not_supported(in, "zero_point false");
}

void read_fp8(json_reader& in, quant_config& q) {
  q.form = quant_form::fp8;
  expect(in, "fmt", "e4m3");
  read_block(in, "weight_block_size", q);
}

void read_modelopt(json_reader& in, quant_config& q) {
  q.form = quant_form::fp8;
  const auto algorithm = in.text("quant_algo");
  if (!algorithm || *algorithm != "FP8")
    not_supported(in, fmt::format("quant_algo '{}'", algorithm.value_or("")));
}

// How inputs were ordered during quantisation. With `static` and `weight` the inputs of a group are
// neighbours.
void read_order(json_reader& in, quant_config& q) {
  const json::value* order = in.find("actorder");
  if (!order || *order == json::value("static") || *order == json::value("weight")) return;
  q.indexed = *order == json::value("group") || *order == json::value("dynamic");
  if (!q.indexed || q.form != quant_form::packed)
    not_supported(in, fmt::format("actorder {}", json::serialize(*order)));
}

// Reads `weights` of a group of compressed-tensors. `format`: the format that the config names.
void read_scheme(json_reader& in, const std::string& format, quant_config& q) {
  const std::string type = in.text("type").value_or("int"), strategy = in.text("strategy").value_or("tensor");
  const bool floats = format == "float-quantized" || (format == "naive-quantized" && type == "float"),
             packed = format == "pack-quantized";
  q.form = packed ? quant_form::packed : floats ? quant_form::fp8 : quant_form::whole_ints;
  if (format == "mxfp4-pack-quantized") q.form = quant_form::mxfp4;
  const bool is_float = floats || q.form == quant_form::mxfp4;
  if (type != (is_float ? "float" : "int")) not_supported(in, fmt::format("type '{}' in {}", type, format));
  q.bits = read_bits(in, "num_bits", packed || q.form == quant_form::mxfp4 ? 2 : 8);
  if (q.form == quant_form::mxfp4 && q.bits != 4) not_supported(in, fmt::format("num_bits {}", q.bits));
  read_order(in, q);
  if (q.form == quant_form::whole_ints && !in.boolean("symmetric").value_or(true))
    not_supported(in, fmt::format("symmetric false in {}", format));
  if (in.boolean("dynamic").value_or(false)) not_supported(in, "dynamic weights");
  if (strategy == "group" && !floats)
    q.group = read_group(in, "group_size");
  else if (strategy == "block" && floats)
    read_block(in, "block_structure", q);
  else if (strategy != "channel" && strategy != "tensor")
    not_supported(in, fmt::format("strategy '{}' in {}", strategy, format));
}

const json::object* object_in(json_reader& in, const json::value* v, std::string_view key) {
  const json::object* o = v ? v->if_object() : nullptr;
  if (!o) in.fail(errc::bad_file, fmt::format("{}: '{}' must be an object", in.what(), key));
  return o;
}

void read_compressed_tensors(json_reader& in, quant_config& q) {
  const std::string format = in.text("format").value_or("dense");
  if (format == "dense") return;
  constexpr std::string_view known[] = {"pack-quantized", "float-quantized", "int-quantized",
                                        "naive-quantized", "mxfp4-pack-quantized"};
  if (std::ranges::find(known, format) == std::end(known))
    return not_supported(in, fmt::format("format '{}'", format));
  for (const char* key : {"transform_config", "sparsity_config"})
    if (const json::value* v = in.find(key); v && !(v->is_object() && v->get_object().empty()))
      not_supported(in, key);
  const json::object* groups = object_in(in, in.find("config_groups"), "config_groups");
  if (!groups) return;
  if (groups->size() != 1)
    return not_supported(in, fmt::format("{} groups in config_groups", groups->size()));
  const json::object* group = object_in(in, &groups->begin()->value(), "config_groups");
  if (!group) return;
  const json::object* weights = object_in(in, group->if_contains("weights"), "weights");
  if (!weights) return;
  json_reader scheme(*weights, in.what() + ": weights");
  read_scheme(scheme, format, q);
  if (scheme.failure()) in.fail(scheme.failure()->code, scheme.failure()->message);
}

}  // namespace

quant_config read_quant_config(json_reader& in) {
  quant_config q;
  const auto method = in.text("quant_method");
  if (!method)
    not_supported(in, "no quant_method");
  else if (*method == "gptq")
    read_gptq(in, q);
  else if (*method == "awq")
    read_awq(in, q);
  else if (*method == "fp8")
    read_fp8(in, q);
  else if (*method == "modelopt")
    read_modelopt(in, q);
  else if (*method == "mxfp4")
    q = {.form = quant_form::mxfp4_experts, .bits = 4, .group = 32};  // the tensors say of which experts
  else if (*method == "exl2")
    q = {.form = quant_form::exl2, .bits = 0};  // the tensors say all else
  else if (*method == "compressed-tensors")
    read_compressed_tensors(in, q);
  else
    not_supported(in, fmt::format("quant_method '{}'", *method));
  return q;
}

}  // namespace weir::core
