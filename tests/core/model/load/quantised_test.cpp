// The quantised linears of Hugging Face directories: golden values of every format, bit for bit, through the
// backends' own layouts; and what is refused, by name.
#include "core/model/load/quantised.h"

#include <algorithm>
#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "core/model/load/fill.h"
#include "core/model/load/safetensors.h"
#include "core/model/load/strict_json.h"
#include "kernels/blocks.h"
#include "tests/support/cuda_device.h"
#include "tests/support/data.h"
#include "tests/support/joined_linear.h"
#include "tests/support/through_backend.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::quantised_test {

using namespace weir::core;
using Catch::Matchers::Contains;
namespace json = boost::json;

namespace {

using backend_ptr = std::shared_ptr<const kernels::backend>;

result<quant_config> read_quantisation(const json::object& config) {
  json_reader in(config.at("quantization_config").as_object(), "config.json: quantization_config");
  const auto q = read_quant_config(in);
  if (in.failure()) return *in.failure();
  return q;
}

std::vector<float> golden_of(const std::filesystem::path& dir) {
  const std::string file = tests::read_file(dir / "golden.safetensors");
  const auto tensors = parse_safetensors(std::as_bytes(std::span(file)), "golden.safetensors").value();
  const auto& bytes = tensors.at("l.weight").bytes;
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

// Folders of formats that are read, and of those that are refused, with a part of the reason.
constexpr const char* read_cases[] = {"awq-gemm",       "ct-fp8-block",
                                      "ct-fp8-channel", "ct-fp8-tensor",
                                      "ct-int3-group",  "ct-int4-asym",
                                      "ct-int4-group",  "ct-int8-channel",
                                      "ct-mxfp4",       "ct-int8-channel-packed",
                                      "fp8-block-f32",  "fp8-block-bf16",
                                      "gptq-2-sym",     "gptq-3-sym",
                                      "gptq-3-v1",      "gptq-4-bf16",
                                      "gptq-4-channel", "gptq-4-sym",
                                      "gptq-4-v1",      "gptq-4-v1-zero",
                                      "gptq-4-v2",      "gptq-8-sym",
                                      "gptq-8-v2",      "modelopt-fp8",
                                      "gptq-4-act",     "ct-int4-act",
                                      "ct-int4-tail",   "exl2"};
struct refused_case {
  const char *name, *why;
};
constexpr refused_case refused_cases[] = {{"ct-nvfp4", "nvfp4-pack-quantized"},
                                          {"exl3-4-mcg", "quant_method 'exl3'"},
                                          {"modelopt-nvfp4", "quant_algo 'NVFP4'"}};

std::filesystem::path folder(const char* name) { return tests::data_dir() / "quant" / name; }

bool has_data() {
  if (std::filesystem::exists(folder("awq-gemm"))) return true;
  WARN("no golden linears below " << tests::data_dir());
  return false;
}

json::object config_in(const char* name) {
  return json::parse(tests::read_file(folder(name) / "config.json")).as_object();
}

void check_golden(std::span<const backend_ptr> backends) {
  if (!has_data()) return;
  for (const char* name : read_cases) {
    CAPTURE(name);
    const auto q = read_quantisation(config_in(name));
    REQUIRE(q.has_value());
    auto c = tests::join_linear(folder(name), *q);
    if (!c) FAIL(c.error().message);
    const auto expected = golden_of(folder(name));
    const std::size_t inputs = c->weight->shape[1], rows = expected.size() / inputs;
    REQUIRE(rows * inputs == expected.size());
    REQUIRE((c->view.rows == rows || c->view.rows == (rows + 31) / 32 * 32));
    std::vector<float> got(std::size_t{c->view.rows} * c->view.cols, NAN);
    kernels::dequantise(c->view.type, c->blocks.data(), got.size(), got.data());
    CHECK(tests::bits_of(tests::in_file_order(*c, got, rows)) == tests::bits_of(expected));
    tests::check_parts(*c);
    for (const auto& b : backends) {
      if (b->do_begin_pack) tests::check_packed_parts(b, *c);
      const auto back = tests::in_file_order(*c, tests::through(b, c->view), rows);
      CHECK(tests::bits_of(back) == tests::bits_of(expected));
      CHECK(tests::multiplied(b, *c, rows) == expected);
    }
  }
}

}  // namespace

TEST_CASE("quantised linears of directories have the golden values, to the bit, on every host backend") {
  const backend_ptr all[] = {kernels::reference_backend(), kernels::cpu_backend(2)};
  check_golden(all);
}

TEST_CASE("quantised linears of directories have the golden values, to the bit, on a device") {
  const backend_ptr all[] = {tests::cuda_device()};
  if (all[0]) check_golden(all);
}

TEST_CASE("any run of blocks of a joined linear is read as in the whole") {
  if (!has_data()) return;
  for (const char* name : read_cases) {
    CAPTURE(name);
    const auto c = tests::join_linear(folder(name), read_quantisation(config_in(name)).value()).value();
    const std::size_t block = kernels::facts(c.view.type).block_bytes, blocks = c.blocks.size() / block;
    for (const auto& [first, count] :
         {std::pair<std::size_t, std::size_t>{1, 1}, {3, blocks / 2}, {blocks - 5, 5}}) {
      std::vector<std::byte> some(count * block, std::byte{0xee});
      REQUIRE(c.all.read(*c.weight, first * block, some).has_value());
      CHECK(std::memcmp(some.data(), c.blocks.data() + first * block, some.size()) == 0);
    }
  }
}

TEST_CASE("formats of directories that are not supported are refused by name") {
  if (!has_data()) return;
  for (const auto& [name, why] : refused_cases) {
    CAPTURE(name);
    const auto q = read_quantisation(config_in(name));
    const auto c = q ? tests::join_linear(folder(name), *q) : result<tests::joined_linear>(q.error());
    REQUIRE(!c.has_value());
    CHECK(c.error().code == errc::not_supported);
    CHECK_THAT(c.error().message, Contains(why));
  }
}

namespace {

struct tensor_of {
  const char *name, *dtype;
  std::vector<std::uint64_t> shape;
};

std::size_t bytes_of_element(std::string_view dtype) {
  return dtype == "I64"                      ? 8
         : dtype == "I32" || dtype == "F32"  ? 4
         : dtype == "F16" || dtype == "BF16" ? 2
                                             : 1;
}

// Joins tensors of zeros and returns the refusal. Tensors named `weight_shape` have the value [8, 64].
std::string refusal(const quant_config& q, const std::vector<tensor_of>& tensors) {
  std::vector<tests::toy_tensor> all;
  for (const auto& [name, dtype, shape] : tensors) {
    std::size_t bytes = bytes_of_element(dtype);
    for (const auto n : shape) bytes *= n;
    all.push_back({name, dtype, shape, std::string(bytes, '\0')});
    if (all.back().name.ends_with("weight_shape")) {
      all.back().bytes[0] = 8;
      all.back().bytes[8] = 64;
    }
  }
  const tests::temporary_dir dir;
  tests::write_file(dir / "model.safetensors", tests::safetensors_bytes(all));
  auto opened = open_safetensors(dir.path().string()).value();
  model_config c;
  c.quantised = q;
  const auto r = join_quantised(opened, c);
  return r ? "accepted" : r.error().message;
}

constexpr quant_config gptq_4{quant_form::gptq, 4, 32, true, 0, 0, false};
constexpr quant_config gptq_4_indexed{quant_form::gptq, 4, 32, true, 0, 0, true};
constexpr quant_config packed_4{quant_form::packed, 4, 32, false, 0, 0, false};
constexpr quant_config packed_4_indexed{quant_form::packed, 4, 32, false, 0, 0, true};
constexpr quant_config fp8_blocks{quant_form::fp8, 8, 0, false, 128, 128, false};

}  // namespace

TEST_CASE("a linear whose tensors are missing or do not fit is refused, with the tensor's name") {
  const tensor_of codes{"l.qweight", "I32", {8, 8}}, zeros{"l.qzeros", "I32", {2, 1}},
      scales{"l.scales", "F16", {2, 8}};
  CHECK(refusal(gptq_4, {codes, zeros, scales}) == "accepted");
  CHECK_THAT(refusal(gptq_4, {codes, scales}), Contains("'l.qzeros' [2, 1] is missing"));
  CHECK_THAT(refusal(gptq_4, {codes, zeros}), Contains("'l.scales' [2, 8] is missing"));
  CHECK_THAT(refusal(gptq_4, {codes, zeros, {"l.scales", "F16", {8, 2}}}),
             Contains("'l.scales' is [8, 2] in the file") && Contains("imply [2, 8]"));
  CHECK_THAT(refusal(gptq_4, {codes, zeros, {"l.scales", "I32", {2, 8}}}),
             Contains("'l.scales' is I32, not F16"));
  CHECK_THAT(refusal(gptq_4, {{"l.qweight", "F32", {8, 8}}}), Contains("'l.qweight' is F32, not I32"));
  CHECK_THAT(refusal(gptq_4, {{"l.qweight", "I32", {8}}}), Contains("'l.qweight' [8] is no matrix"));
  CHECK_THAT(refusal(gptq_4, {{"l.qweight", "I32", {0, 8}}}), Contains("sides must be 1 to"));
  CHECK_THAT(refusal(gptq_4, {{"l.qweight", "I32", {3, 8}}}), Contains("24 inputs"));
  CHECK_THAT(refusal({quant_form::gptq, 3, 32, true, 0, 0, false}, {{"l.qweight", "I32", {4, 8}}}),
             Contains("42 inputs, which are no multiple of 32"));
  CHECK_THAT(refusal(gptq_4, {codes, zeros, scales, {"l.g_idx", "I32", {64}}}),
             Contains("'l.g_idx': group 0 has 64 inputs, not 32") && Contains("unequal size"));
  CHECK_THAT(refusal(gptq_4, {codes, zeros, scales, {"l.g_idx", "I32", {63}}}),
             Contains("'l.g_idx' is [63] in the file") && Contains("imply [64]"));
  CHECK_THAT(refusal(gptq_4, {codes, zeros, scales, {"l.g_idx", "I64", {64}}}), Contains("is I64, not I32"));
  CHECK_THAT(refusal(gptq_4_indexed, {codes, zeros, scales}), Contains("'l.g_idx' [64] is missing"));
  CHECK(refusal({quant_form::gptq, 4, 0, true, 0, 0, true},
                {codes, {"l.qzeros", "I32", {1, 1}}, {"l.scales", "F16", {1, 8}}}) == "accepted");
  CHECK_THAT(refusal(gptq_4, {codes, zeros, scales, {"l.weight", "F16", {8, 64}}}),
             Contains("'l.weight' is there both plain and quantised"));

  const tensor_of packed{"l.weight_packed", "I32", {8, 8}}, shape{"l.weight_shape", "I64", {2}},
      rows{"l.weight_scale", "BF16", {8, 2}};
  CHECK(refusal(packed_4, {packed, shape, rows}) == "accepted");
  CHECK_THAT(refusal(packed_4_indexed, {packed, shape, rows}), Contains("'l.weight_g_idx' [64] is missing"));
  CHECK_THAT(refusal(packed_4, {packed, rows}), Contains("'l.weight_shape' [2] is missing"));
  CHECK_THAT(refusal(packed_4, {{"l.weight_packed", "I32", {8, 9}}, shape, rows}), Contains("imply [8, 8]"));
  CHECK_THAT(refusal(packed_4, {packed, shape, rows, {"l.weight_zero_point", "I32", {8, 2}}}),
             Contains("imply [1, 2]"));

  const tensor_of bytes{"l.weight", "F8_E4M3", {130, 160}};
  CHECK(refusal(fp8_blocks, {bytes, {"l.weight_scale_inv", "F32", {2, 2}}}) == "accepted");
  CHECK_THAT(refusal(fp8_blocks, {bytes, {"l.weight_scale_inv", "F32", {1, 2}}}), Contains("imply [2, 2]"));
  CHECK_THAT(refusal(fp8_blocks, {bytes}), Contains("'l.weight_scale' [2, 2] is missing"));
}

TEST_CASE(
    "a weight of fp8 that is not a number, and a scale that is not finite, are found when they are read") {
  for (const bool weight : {true, false}) {
    std::string codes(8 * 32, '\x01'), scale("\x00\x00\x80\x3f", 4);
    if (weight) codes[3 * 32 + 5] = '\xff';
    if (!weight) scale = std::string("\x00\x00\x80\x7f", 4);
    const tests::temporary_dir dir;
    tests::write_file(dir / "model.safetensors",
                     tests::safetensors_bytes(
                         {{"l.weight", "F8_E4M3", {8, 32}, codes}, {"l.weight_scale", "F32", {1}, scale}}));
    auto all = open_safetensors(dir.path().string()).value();
    model_config c;
    c.quantised.form = quant_form::fp8;
    REQUIRE(join_quantised(all, c).has_value());
    std::vector<std::byte> to(8 * 36);
    const auto r = read_elements(all, *all.find("l.weight"), kernels::dtype::fp8, 0, 8 * 32, to.data());
    REQUIRE(!r.has_value());
    CHECK(r.error().code == errc::bad_file);
    CHECK_THAT(r.error().message, Contains("'l.weight'") && Contains(weight ? "is NaN" : "is not finite"));
  }
}

}  // namespace weir::tests::quantised_test
