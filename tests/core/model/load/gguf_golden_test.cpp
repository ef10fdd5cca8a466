// The numbers of every quantised format, bit for bit against an independent reader's, and through the cpu
// backend's own layout.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "core/model/load/fill.h"
#include "core/model/load/gguf.h"
#include "core/model/load/safetensors.h"
#include "kernels/blocks.h"
#include "tests/support/cuda_device.h"
#include "tests/support/data.h"
#include "tests/support/through_backend.h"

namespace weir::tests::gguf_golden_test {

using namespace weir::core;

namespace {

// Compares every golden tensor with what `dequantise` and the backends make of its blocks.
void check_golden(std::span<const std::shared_ptr<const kernels::backend>> backends) {
  const auto dir = tests::data_dir() / "quant" / "ggml";
  if (!std::filesystem::exists(dir)) {
    WARN("no golden blocks below " << tests::data_dir());
    return;
  }
  const std::string blocks = tests::read_file(dir / "blocks.gguf"),
                    golden = tests::read_file(dir / "golden.safetensors");
  const auto file = parse_gguf(std::as_bytes(std::span(blocks)), "blocks.gguf").value();
  const auto wanted = parse_safetensors(std::as_bytes(std::span(golden)), "golden.safetensors").value();
  std::size_t types = 0;
  for (const auto& [name, t] : file.tensors) {
    CAPTURE(name);
    const auto type = supported_type(t.dtype);
    if (t.dtype == "NVFP4") continue;  // refused when a model is planned
    REQUIRE(type);
    ++types;
    const auto& values = wanted.at(name);
    REQUIRE(values.shape == t.shape);
    std::vector<float> expected(values.bytes.size() / sizeof(float)), got(expected.size(), NAN);
    std::memcpy(expected.data(), values.bytes.data(), values.bytes.size());
    kernels::dequantise(*type, t.bytes.data(), got.size(), got.data());
    CHECK(tests::bits_of(got) == tests::bits_of(expected));
    const kernels::matrix rows{t.bytes.data(), *type, static_cast<std::uint32_t>(t.shape[0]),
                               static_cast<std::uint32_t>(t.shape[1])};
    for (const auto& b : backends) CHECK(tests::bits_of(tests::through(b, rows)) == tests::bits_of(expected));
  }
  const auto in_no_file =
      std::ranges::count(kernels::block_formats, true, &kernels::block_format::wide_scales);
  CHECK(types == 2 * (kernels::dtype_count - in_no_file));  // each from random numbers and from random bytes
}

}  // namespace

TEST_CASE("the blocks of every type have the golden values, to the bit, on every host backend") {
  const std::shared_ptr<const kernels::backend> all[] = {kernels::reference_backend(),
                                                         kernels::cpu_backend(2)};
  check_golden(all);
}

TEST_CASE("cuda: the blocks of every type have the golden values, to the bit") {
  if (const auto b = tests::cuda_device()) check_golden({&b, 1});
}

TEST_CASE("the golden file's keys of every kind are read") {
  const auto dir = tests::data_dir() / "quant" / "ggml";
  if (!std::filesystem::exists(dir)) {
    WARN("no golden blocks below " << tests::data_dir());
    return;
  }
  const std::string blocks = tests::read_file(dir / "blocks.gguf");
  const auto file = parse_gguf(std::as_bytes(std::span(blocks)), "blocks.gguf").value();
  CHECK(std::get<std::uint64_t>(file.keys.at("t.u64")) == ~std::uint64_t{0});
  CHECK(std::get<std::int64_t>(file.keys.at("t.i64")) == INT64_MIN);
  CHECK(std::get<std::string_view>(file.keys.at("general.name")) == "Bl\u00f6cke \u2581\n");
  CHECK(std::get<gguf_array>(file.keys.at("t.strings")).texts[2] == "\u0120b");
  CHECK(std::get<gguf_array>(file.keys.at("t.ints")).number(2) == 3);
}

}  // namespace weir::tests::gguf_golden_test
