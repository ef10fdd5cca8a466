// Quantised directories through upload_slices(): a backend of the host that packs what it is given as a
// device does, into blocks, has the weights that a host backend has.
#include <catch2/catch.hpp>
#include <cstring>
#include <new>

#include "core/model/config.h"
#include "core/model/load/experts.h"
#include "core/model/load/fill.h"
#include "core/model/load/quantised.h"
#include "core/model/load/safetensors.h"
#include "core/model/weights.h"
#include "kernels/blocks.h"
#include "tests/support/data.h"
#include "tests/support/golden.h"

namespace weir::tests::upload_test {

using namespace weir::core;

namespace {

// Writes the block of a row of codes at `to`, as the loader makes it for host backends.
void write_block(kernels::dtype type, const kernels::file_codes& c, std::uint32_t row, std::uint32_t block,
                 std::byte* to) {
  std::uint8_t codes[32];
  kernels::read_codes(c, row, block, codes);
  const std::size_t group = c.value_at(row, c.blocks[block]);
  const float scale = c.scales[group];
  const auto put = [&](std::uint8_t byte) { *to++ = static_cast<std::byte>(byte); };
  if (type == kernels::dtype::mxfp4) {
    put(static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(scale) >> 23));
  } else if (!kernels::format_of(type).wide_scales) {
    const std::uint16_t half = kernels::to_f16(scale);
    put(static_cast<std::uint8_t>(half & 0xff));
    put(static_cast<std::uint8_t>(half >> 8));
  } else {
    std::memcpy(to, &scale, 4);
    to += 4;
  }
  if (kernels::format_of(type).zeros)
    for (const int byte : {int{c.zeros[group]}, 0, 0, 0}) put(static_cast<std::uint8_t>(byte));
  if (kernels::format_of(type).code_bits == 8)
    for (const std::uint8_t code : codes) put(type == kernels::dtype::q8_0 ? code ^ 0x80 : code);
  else
    for (int i = 0; i < 16; ++i) put(static_cast<std::uint8_t>(codes[i] | codes[16 + i] << 4));
}

// The reference backend, which uploads and packs slices. Its layout is blocks, row by row.
struct packing_backend {
  kernels::backend table = *kernels::reference_backend();
  std::size_t parts = 0;

  packing_backend() {
    table.self = this;
    table.do_allocate_host = [](void*, std::uint64_t bytes) { return ::operator new(bytes); };
    table.do_free_host = [](void*, void* at, std::uint64_t) { ::operator delete(at); };
    table.do_begin_upload = [](void*, void* to, const void* from, std::uint64_t bytes, unsigned) {
      std::memcpy(to, from, bytes);
    };
    table.do_await_upload = [](void*, unsigned) {};
    table.do_begin_pack = [](void* self, const kernels::matrix& packed, const kernels::packed_part& part,
                             unsigned) {
      const std::uint64_t row = kernels::bytes_of(packed.type, packed.cols);
      auto* const to = static_cast<std::byte*>(const_cast<void*>(packed.data)) + part.first * row;
      if (!part.codes) {
        std::memcpy(to, part.rows.data, part.rows.bytes());
        return;
      }
      ++static_cast<packing_backend*>(self)->parts;
      const kernels::file_codes& c = *part.codes;
      const std::uint64_t block = kernels::facts(packed.type).block_bytes;
      for (std::uint32_t r = 0; r < c.rows; ++r)
        for (std::uint32_t b = 0; b < c.columns / 32; ++b)
          write_block(packed.type, c, r, b, to + r * row + (c.column / 32 + b) * block);
    };
  }
  std::shared_ptr<const kernels::backend> backend() const { return {std::shared_ptr<void>(), &table}; }
};

// All matrices of a model, one after the other.
std::vector<kernels::matrix> matrices_of(const model_weights& w) {
  std::vector<kernels::matrix> all{w.embedding, w.head};
  for (const layer_weights& l : w.layers)
    for (const linear_weight* each : {&l.qkv, &l.out, &l.gate_up, &l.down}) {
      all.push_back(each->w);
      all.insert(all.end(), each->rest.begin(), each->rest.end());
    }
  for (const layer_weights& l : w.layers)
    for (const kernels::expert_matrices* each : {&l.experts.gate_up, &l.experts.down})
      for (std::uint32_t e = 0; e < each->count; ++e) all.push_back(each->of(e));
  return all;
}

}  // namespace

TEST_CASE("quantised directories reach a device that packs their codes with the weights that hosts have") {
  const auto folders = data_folders("models-quant", "config.json");
  if (folders.empty()) WARN("no quantised directories below " << data_dir());
  for (const auto& dir : folders) {
    CAPTURE(dir.filename());
    const auto config = parse_config(read_file(dir / "config.json"), "config.json").value();
    auto files = open_safetensors(dir.string()).value();
    REQUIRE(join_quantised(files, config).has_value());
    const auto wanted = load_weights(config, files, kernels::reference_backend(), {}).value();
    packing_backend device;
    std::uint64_t last = 0, total = 1;
    const auto got = load_weights(config, files, device.backend(), [&](std::uint64_t done, std::uint64_t of) {
                       last = done;
                       total = of;
                     }).value();
    CHECK(last == total);
    CHECK(device.parts > 0);
    const auto a = matrices_of(wanted), b = matrices_of(got);
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      CAPTURE(i, kernels::name(a[i].type));
      REQUIRE(a[i].bytes() == b[i].bytes());
      CHECK(std::memcmp(a[i].data, b[i].data, a[i].bytes()) == 0);
    }
  }
}

TEST_CASE("experts reach a device that uploads slices with the weights that hosts have") {
  const auto folders = data_folders("models-families", "reference.json");
  if (folders.empty()) WARN("no models of further families below " << data_dir());
  std::size_t parts = 0, checked = 0;
  for (const auto& dir : folders) {
    const auto config = parse_config(read_file(dir / "config.json"), "config.json");
    if (!config || !config->shape.layers.back().mlp.is_mixture()) continue;
    CAPTURE(dir.filename());
    auto files = open_safetensors(dir.string()).value();
    REQUIRE(arrange_experts(files, *config).has_value());
    const auto wanted = load_weights(*config, files, kernels::reference_backend(), {}).value();
    packing_backend device;
    std::uint64_t last = 0, total = 1;
    const auto got =
        load_weights(*config, files, device.backend(), [&](std::uint64_t done, std::uint64_t of) {
          last = done;
          total = of;
        }).value();
    CHECK(last == total);
    const auto a = matrices_of(wanted), b = matrices_of(got);
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      REQUIRE(a[i].bytes() == b[i].bytes());
      // A matrix that a model lacks has no data: memcmp must not see its null pointer.
      if (a[i].bytes() != 0) CHECK(std::memcmp(a[i].data, b[i].data, a[i].bytes()) == 0);
    }
    parts += device.parts;
    ++checked;
  }
  CHECK((folders.empty() || (checked == 9 && parts > 0)));
}

TEST_CASE("a part that is larger than what a device packs at once is refused before it is read") {
  // Rows so wide that a few of them are over the limit: one part, whatever size is asked for.
  struct wide_tensor final : converted_tensor {
    result<void> read(const checkpoint&, std::uint64_t, std::span<std::byte>) const override { return {}; }
    std::vector<tensor_part> parts(std::uint32_t rows, std::uint64_t) const override {
      return {{0, rows, 0, 1u << 23, kernels::backend::most_packed_at_once + 1}};
    }
    result<kernels::file_codes> read_part(const checkpoint&, const tensor_part&,
                                          std::span<std::byte>) const override {
      FAIL("a part was read");
      return kernels::file_codes{};
    }
  };
  stored_tensor wide;
  wide.made_by = std::make_shared<wide_tensor>();
  placed one;
  one.rows = {nullptr, kernels::dtype::fp8, 8, 1u << 23};
  one.weight = true;
  one.pieces = {{std::uint64_t{8} << 23, &wide}};
  packing_backend device;
  const auto loaded = upload_slices(
      {one}, checkpoint(), device.backend(), [](std::uint64_t) {}, 1, 4u << 20);
  REQUIRE(!loaded);
  CHECK(loaded.error().code == errc::not_supported);
  CHECK_THAT(loaded.error().message, Catch::Contains("rows of 8388608 columns"));
}

}  // namespace weir::tests::upload_test
