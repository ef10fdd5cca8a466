// Mixtures of experts in quantised directories: their experts have the weights that the files define, and
// their logits are those of the same weights in f32, and of plain loops in double.
#include <catch2/catch.hpp>
#include <functional>

#include "core/model/load.h"
#include "core/model/load/opened_model.h"
#include "core/model/weights.h"
#include "tests/support/difference.h"
#include "tests/support/drive.h"
#include "tests/support/quantised_mixture.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::quantised_experts_test {

using namespace weir::core;
using Catch::Matchers::Contains;
namespace json = boost::json;
using namespace tests::quantised_mixture;

namespace {

using backend_ptr = std::shared_ptr<const kernels::backend>;

struct directory {
  tests::temporary_dir dir;
  directory(tests::toy_options o, const std::vector<tests::toy_tensor>& tensors, bool quantised) {
    if (!quantised) o.config.erase("quantization_config");
    tests::write_toy_directory(dir.path(), o);
    tests::write_file(dir / "model.safetensors", tests::safetensors_bytes(tensors));
  }
  std::unique_ptr<model> load(const backend_ptr& on) const {
    auto m = load_model(dir.path().string(), on);
    if (!m) FAIL(m.error().message);
    m->weights->allocate_pages(4).value();
    return std::move(m->weights);
  }
  std::string refusal() const {
    const auto m = inspect_model(dir.path().string(), *kernels::reference_backend());
    return m ? "accepted" : m.error().message;
  }
};

json::object compressed(const char* format, json::object weights) {
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"config_groups", json::object{{"group_0", json::object{{"targets", json::array{"Linear"}},
                                                                  {"weights", std::move(weights)}}}}},
          {"ignore", json::array{"lm_head", "re:.*mlp.gate$", "re:.*shared_expert_gate$"}}};
}

json::object packed_config(std::uint32_t group, bool symmetric) {
  json::object w{{"num_bits", 4}, {"type", "int"}, {"symmetric", symmetric}, {"actorder", nullptr}};
  w["strategy"] = group ? "group" : "channel";
  if (group) w["group_size"] = group;
  return compressed("pack-quantized", std::move(w));
}

json::object awq_config(std::uint32_t group) {
  return {{"quant_method", "awq"}, {"bits", 4},
          {"group_size", group},   {"version", "gemm"},
          {"zero_point", true},    {"modules_to_not_convert", json::array{"gate", "shared_expert_gate"}}};
}

json::object block_config() {
  return {{"quant_method", "fp8"},
          {"fmt", "e4m3"},
          {"activation_scheme", "dynamic"},
          {"weight_block_size", json::array{128, 128}},
          {"modules_to_not_convert", json::array{"lm_head", "model.layers.0.mlp.gate"}}};
}

json::object float_config(const char* strategy) {
  json::object w{{"num_bits", 8}, {"type", "float"}, {"symmetric", true}, {"strategy", strategy}};
  if (std::string_view(strategy) == "block") w["block_structure"] = json::array{128, 128};
  return compressed("float-quantized", std::move(w));
}

linear_format fp8(scale_of scales, const char* dtype, const char* name) {
  linear_format f;
  f.scales = scales;
  f.scale_dtype = dtype;
  f.scale_name = name;
  return f;
}

linear_format int4(std::uint32_t group, bool zeros) {
  linear_format f;
  f.form = linear_format::packed;
  f.scale_dtype = "BF16";
  f.group = group;
  f.zeros = zeros;
  return f;
}

linear_format awq(std::uint32_t group) {
  linear_format f;
  f.form = linear_format::awq;
  f.group = group;
  return f;
}

linear_format int8() {
  linear_format f;
  f.form = linear_format::whole_ints;
  f.scale_dtype = "BF16";
  return f;
}

bool but_shared(const std::string& name) {
  return is_router(name) || name.find("shared_expert") != name.npos;
}
bool but_first_layer(const std::string& name) {
  return is_router(name) || name.starts_with("model.layers.0.");
}
bool nothing(const std::string&) { return false; }

// Forms in which mixtures are published, and what their writers leave out.
std::vector<recipe> recipes() {
  linear_format factors = fp8(scale_of::all, "F32", ".weight_scale");
  factors.input_scale = true;
  const json::object per_tensor{{"quant_method", "fp8"}, {"activation_scheme", "static"}};
  const json::object whole{{"num_bits", 8}, {"type", "int"}, {"symmetric", true}, {"strategy", "channel"}};
  const auto blocks = fp8(scale_of::block, "F32", ".weight_scale_inv");
  return {
      {"fp8, blocks, f32", blocks, block_config(), 160, 192, naming::qwen2, is_router},
      {"fp8, blocks, bf16", fp8(scale_of::block, "BF16", ".weight_scale_inv"), block_config(), 256, 192,
       naming::mixtral, is_router},
      {"fp8, the shared expert plain", blocks, block_config(), 160, 96, naming::qwen2, but_shared},
      {"fp8, a factor each, with factors of activations", factors, per_tensor, 160, 96, naming::mixtral,
       is_router},
      {"float-quantized, outputs", fp8(scale_of::output, "BF16", ".weight_scale"), float_config("channel"),
       160, 96, naming::qwen2, is_router},
      {"float-quantized, blocks", fp8(scale_of::block, "BF16", ".weight_scale"), float_config("block"), 160,
       192, naming::qwen2, but_first_layer},
      {"float-quantized, routers too", fp8(scale_of::output, "F32", ".weight_scale"), float_config("channel"),
       160, 96, naming::mixtral, nothing},
      {"awq, 128", awq(128), awq_config(128), 256, 128, naming::qwen2, is_router},
      {"awq, 32", awq(32), awq_config(32), 160, 96, naming::mixtral, is_router},
      {"awq, 64, the shared expert plain", awq(64), awq_config(64), 192, 64, naming::qwen2, but_shared},
      {"pack-quantized, 128", int4(128, false), packed_config(128, true), 256, 128, naming::qwen2, is_router},
      {"pack-quantized, 32, with zeros", int4(32, true), packed_config(32, false), 160, 96, naming::mixtral,
       is_router},
      {"pack-quantized, outputs", int4(0, false), packed_config(0, true), 160, 96, naming::qwen2, but_shared},
      {"pack-quantized, routers too", int4(64, false), packed_config(64, true), 192, 64, naming::mixtral,
       nothing},
      {"int-quantized", int8(), compressed("int-quantized", whole), 160, 96, naming::mixtral, is_router},
  };
}

// The weights [rows, cols] of an expert, found as products of an identity matrix with them.
std::vector<float> weights_of(const backend_ptr& b, const kernels::expert_matrices& all, std::uint32_t e) {
  const std::uint32_t rows = all.first.rows, cols = all.first.cols;
  std::vector<float> identity(std::size_t{cols} * cols), got(std::size_t{cols} * rows), out;
  for (std::size_t i = 0; i < cols; ++i) identity[i * cols + i] = 1;
  std::vector<std::int32_t> ids(cols, static_cast<std::int32_t>(e));
  b->run(kernels::expert_linear{all, nullptr, identity.data(), ids.data(), got.data(), cols, 1});
  for (std::size_t n = 0; n < rows; ++n)
    for (std::size_t k = 0; k < cols; ++k) out.push_back(got[k * rows + n]);
  return out;
}

std::vector<float> stacked(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<float> out(a.begin(), a.end());
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

void check_experts(const directory& d, const plain_mixture& wanted, const backend_ptr& on) {
  const auto m = open_model(d.dir.path().string()).value();
  const auto loaded = load_weights(m.config, m.weights, on, {}).value();
  for (std::uint32_t e = 0; e < experts; ++e) {
    CAPTURE(e);
    const std::string at = fmt::format("model.layers.{}.mlp.experts.{}.", layers - 1, e);
    const kernels::expert_weights& w = loaded.layers.back().experts;
    CHECK(weights_of(on, w.gate_up, e) ==
          stacked(wanted.weights.at(at + "gate_proj"), wanted.weights.at(at + "up_proj")));
    CHECK(weights_of(on, w.down, e) == stacked(wanted.weights.at(at + "down_proj"), {}));
  }
}

std::vector<float> logits_of(model& m, std::span<const token_id> ids, std::size_t chunk) {
  tests::driven_sequence s(m, 0, 1);
  const auto row = s.feed(ids, chunk);
  return {row.begin(), row.end()};
}

void check_logits(const mixture_files& files, const directory& quantised, const directory& plain,
                  const backend_ptr& on, bool same_bits) {
  const auto m = quantised.load(on), same = plain.load(on);
  for (const token_id token : {0, 7, 65, 130, 257}) {
    const auto exact = files.wanted.logits(static_cast<std::size_t>(token));
    const std::vector<float> wanted(exact.begin(), exact.end());
    CHECK(tests::difference(wanted, logits_of(*m, {&token, 1}, 1)) < 1e-5);
  }
  const std::vector<token_id> text{3, 1, 4, 1, 5, 92, 65, 35, 89, 79, 32, 38, 46, 26, 43, 38, 32, 79, 50};
  for (const std::size_t chunk : {text.size(), std::size_t{4}}) {
    const auto got = logits_of(*m, text, chunk), other = logits_of(*same, text, chunk);
    CHECK(tests::difference(other, got) < 1e-5);
    if (same_bits) CHECK(got == other);
  }
}

}  // namespace

TEST_CASE("experts of quantised mixtures have the weights that their files define, bit for bit") {
  for (const recipe& how : recipes()) {
    CAPTURE(how.name);
    const mixture_files files = writer(how).write();
    const directory d(files.options, files.quantised, true);
    for (const auto& on : {kernels::reference_backend(), kernels::cpu_backend(2)})
      check_experts(d, files.wanted, on);
  }
}

TEST_CASE("logits of quantised mixtures are those of plain loops, and of the same weights in f32") {
  for (const recipe& how : recipes()) {
    CAPTURE(how.name);
    const mixture_files files = writer(how).write();
    const directory quantised(files.options, files.quantised, true), plain(files.options, files.plain, false);
    check_logits(files, quantised, plain, kernels::reference_backend(), true);
    check_logits(files, quantised, plain, kernels::cpu_backend(2), false);
  }
}

TEST_CASE("quantised mixtures take what their headers say") {
  for (const recipe& how : recipes()) {
    CAPTURE(how.name);
    const mixture_files files = writer(how).write();
    const directory d(files.options, files.quantised, true);
    for (const auto& on : {kernels::reference_backend(), kernels::cpu_backend(2)}) {
      const auto planned = inspect_model(d.dir.path().string(), *on, {}, 3).value();
      const auto m = d.load(on);
      m->warm_up(3, m->info().prompt_rows).value();
      CHECK(m->info().weight_bytes == planned.weight_bytes);
      CHECK(m->info().page_bytes == planned.page_bytes);
      CHECK(m->activation_bytes() == planned.workspaces);
    }
  }
}

namespace {

// Why a directory of this form is refused after `change`.
std::string refusal(const recipe& how, const std::function<void(mixture_files&)>& change) {
  mixture_files files = writer(how).write();
  change(files);
  return directory(files.options, files.quantised, true).refusal();
}

tests::toy_tensor& named(mixture_files& files, const std::string& name) {
  return *std::ranges::find(files.quantised, name, &tests::toy_tensor::name);
}

recipe with(linear_format format, json::object config, std::uint32_t hidden, std::uint32_t inter) {
  return {"", std::move(format), std::move(config), hidden, inter, naming::qwen2, is_router};
}

}  // namespace

TEST_CASE("forms of quantised experts that are not supported are refused by the tensor's name") {
  const std::string expert = "model.layers.1.mlp.experts.3.";
  const recipe blocks = with(fp8(scale_of::block, "F32", ".weight_scale_inv"), block_config(), 64, 64);
  CHECK(refusal(blocks, [](mixture_files&) {}) == "accepted");

  // An expert that was left out, beside others that were not.
  CHECK_THAT(refusal(blocks,
                     [&](mixture_files& files) {
                       const auto plain = std::ranges::find(files.plain, expert + "up_proj.weight",
                                                            &tests::toy_tensor::name);
                       named(files, expert + "up_proj.weight") = *plain;
                       std::erase_if(files.quantised, [&](const auto& t) {
                         return t.name == expert + "up_proj.weight_scale_inv";
                       });
                     }),
             Contains("'" + expert + "up_proj.weight'") && Contains("experts of types fp8 and f32"));

  // Scales of another expert's size, and none at all.
  CHECK_THAT(refusal(blocks,
                     [&](mixture_files& files) {
                       auto& scales = named(files, expert + "down_proj.weight_scale_inv");
                       scales.shape = {1, 2};
                       scales.bytes.resize(8);
                     }),
             Contains("'" + expert + "down_proj.weight_scale_inv' is [1, 2]") && Contains("[1, 1]"));
  CHECK_THAT(refusal(blocks,
                     [&](mixture_files& files) {
                       std::erase_if(files.quantised, [&](const auto& t) {
                         return t.name == expert + "down_proj.weight_scale_inv";
                       });
                     }),
             Contains("'" + expert + "down_proj.weight_scale' [1, 1] is missing"));

  // One quantised tensor of all experts.
  const auto merged = [&](const std::string& name) {
    return refusal(blocks, [&](mixture_files& files) {
      std::erase_if(files.quantised,
                    [](const auto& t) { return t.name.starts_with("model.layers.0.mlp.experts."); });
      files.quantised.push_back({name, "F8_E4M3", {experts, 128, 64}, std::string(experts * 128 * 64, '\1')});
    });
  };
  CHECK_THAT(merged("model.layers.0.mlp.experts.gate_up_proj.weight"),
             Contains("'model.layers.0.mlp.experts.gate_up_proj.weight' [5, 128, 64]") &&
                 Contains("quantised experts in one tensor are not supported yet"));
  CHECK_THAT(merged("model.layers.0.mlp.experts.gate_up_proj"),
             Contains("'model.layers.0.mlp.experts.gate_up_proj'") &&
                 Contains("dtype F8_E4M3 is not supported yet"));

  // Inputs in an order of their own, and inputs that do not fill blocks.
  json::object ordered = packed_config(32, true);
  ordered["config_groups"].at("group_0").at("weights").as_object()["actorder"] = "group";
  CHECK_THAT(refusal(with(int4(32, false), ordered, 64, 64),
                     [](mixture_files& files) {
                       std::vector<tests::toy_tensor> more;
                       for (const auto& t : files.quantised)
                         if (t.name.ends_with("_packed")) {
                           std::vector<std::int32_t> order(t.shape[1] * 8);
                           for (std::size_t k = 0; k < order.size(); ++k)
                             order[k] = static_cast<std::int32_t>(k % (order.size() / 32));
                           more.push_back({t.name.substr(0, t.name.size() - 6) + "g_idx",
                                           "I32",
                                           {order.size()},
                                           tests::detail::raw(order)});
                         }
                       std::ranges::move(more, std::back_inserter(files.quantised));
                     }),
             Contains("'model.layers.0.mlp.experts.0.gate_proj.weight'") && Contains("another order"));
  CHECK_THAT(
      refusal(with(int4(0, false), packed_config(0, true), 64, 40), [](mixture_files&) {}),
      Contains("'model.layers.0.mlp.experts.0.down_proj.weight'") && Contains("do not fill blocks of 32"));
}

}  // namespace weir::tests::quantised_experts_test
