// joined_linear.h — a quantised linear of a directory, joined (core/model/load/quantised.h), and what its
// weights are.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/model/load/fill.h"
#include "core/model/load/quantised.h"
#include "core/model/load/safetensors.h"
#include "kernels/blocks.h"
#include "kernels/buffer.h"
#include "kernels/host_buffer.h"
#include "kernels/ops.h"

namespace weir::tests {

// The blocks of `l.weight` in a folder, joined as `q` says.
struct joined_linear {
  core::checkpoint all;
  const core::stored_tensor* weight = nullptr;
  std::vector<std::byte> blocks;
  kernels::matrix view;
};
inline core::result<joined_linear> join_linear(const std::filesystem::path& dir,
                                               const core::quant_config& q) {
  auto opened = core::open_safetensors(dir.string());
  if (!opened) return opened.error();
  joined_linear c{std::move(*opened), nullptr, {}, {}};
  core::model_config m;
  m.quantised = q;
  if (auto ok = core::join_quantised(c.all, m); !ok) return ok.error();
  c.weight = c.all.find("l.weight");
  REQUIRE(c.weight);
  REQUIRE(c.all.tensors().size() == 1);
  const auto type = core::supported_type(c.weight->dtype).value();
  const auto& inputs = c.weight->inputs;
  c.view = {nullptr, type, static_cast<std::uint32_t>(c.weight->shape[0]),
            static_cast<std::uint32_t>(inputs ? inputs->size() : c.weight->shape[1])};
  c.blocks.assign(c.view.bytes(), std::byte{0xee});
  if (auto ok = c.all.read(*c.weight, 0, c.blocks); !ok) return ok.error();
  c.view.data = c.blocks.data();
  return c;
}

// Reorders weights [rows, columns] of the joined tensor to [rows, inputs] in the order of the file's inputs.
// Rows behind `rows`, and columns that only fill up a block, are left out. Such columns belong to input 0 and
// must be zeros. REQUIRES: input 0 has a weight that is not zero, where columns fill up
inline std::vector<float> in_file_order(const joined_linear& c, const std::vector<float>& all,
                                        std::size_t rows) {
  const std::size_t inputs = c.weight->shape[1], columns = c.view.cols;
  std::vector<float> out(rows * inputs, NAN);
  std::vector<bool> filled(inputs);
  for (std::size_t at = 0; at < columns; ++at) {
    const std::size_t input = c.weight->inputs ? (*c.weight->inputs)[at] : at;
    REQUIRE(input < inputs);
    bool zeros = true;
    for (std::size_t n = 0; n < rows; ++n) zeros &= all[n * columns + at] == 0;
    if (filled[input]) REQUIRE(zeros);
    if (filled[input] || (zeros && columns > inputs && input == 0)) continue;
    filled[input] = true;
    for (std::size_t n = 0; n < rows; ++n) out[n * inputs + input] = all[n * columns + at];
  }
  return out;
}

// The weights [rows, inputs], found as products of an identity matrix with them.
inline std::vector<float> multiplied(const std::shared_ptr<const kernels::backend>& b, const joined_linear& c,
                                     std::size_t rows) {
  const auto inputs = static_cast<std::uint32_t>(c.weight->shape[1]);
  const kernels::buffer memory(b, b->weight_bytes(b->self, c.view.type, c.view.rows, c.view.cols));
  b->do_pack(b->self, c.view, memory.data());
  kernels::matrix w = c.view;
  w.data = memory.data();
  w.order = kernels::layout::packed;
  const kernels::buffer order(b, std::size_t{w.cols} * 4);
  if (c.weight->inputs) {
    b->do_upload(b->self, order.data(), c.weight->inputs->data(), order.size());
    w.input_count = inputs;
    w.inputs = reinterpret_cast<const std::uint32_t*>(order.data());
  }
  std::vector<float> identity(std::size_t{inputs} * inputs), got(std::size_t{inputs} * w.rows, NAN), out;
  for (std::size_t i = 0; i < inputs; ++i) identity[i * inputs + i] = 1;
  const kernels::buffer x(b, identity.size() * 4), y(b, got.size() * 4);
  b->do_upload(b->self, x.data(), identity.data(), x.size());
  b->do_upload(b->self, y.data(), got.data(), y.size());
  b->run(kernels::linear{w, nullptr, x.floats(), y.floats(), inputs});
  b->do_download(b->self, got.data(), y.data(), y.size());
  for (std::size_t n = 0; n < rows; ++n)
    for (std::size_t k = 0; k < inputs; ++k) out.push_back(got[k * w.rows + n]);
  return out;
}

// Checks that the parts of the tensor, of whatever size, have each code, scale and zero of its blocks once.
inline void check_parts(const joined_linear& c) {
  const auto& facts = kernels::facts(c.view.type);
  const std::size_t across = c.view.cols / 32;
  for (const std::uint64_t most : {1u, 3000u, 1u << 20}) {
    std::vector<int> seen(c.view.rows * across);
    for (const core::tensor_part& part : c.weight->made_by->parts(c.view.rows, most)) {
      std::vector<std::uint32_t> read(part.bytes / 4 + 1, 0xdbdbdbdb);
      const auto there = c.weight->made_by->read_part(
          c.all, part, std::as_writable_bytes(std::span(read)).first(part.bytes));
      REQUIRE(there.has_value());
      REQUIRE(there->bytes == part.bytes);
      const auto copied = read;
      std::ranges::fill(read, 0u);
      const kernels::file_codes codes = there->copied_to(copied.data());
      for (std::uint32_t r = 0; r < part.rows; ++r)
        for (std::uint32_t b = 0; b < part.columns / 32; ++b) {
          const std::size_t at = (part.row + r) * across + part.column / 32 + b;
          ++seen[at];
          kernels::block_parts wanted;
          kernels::take_apart(c.view.type, c.blocks.data() + at * facts.block_bytes, wanted);
          std::uint8_t got[32];
          kernels::read_codes(codes, r, b, got);
          CAPTURE(most, part.row, part.column, r, b);
          REQUIRE(std::equal(got, got + 32, wanted.codes.begin()));
          const std::size_t group = codes.value_at(r, codes.blocks[b]);
          REQUIRE(codes.scales[group] == wanted.scale);
          const auto& format = kernels::format_of(c.view.type);
          if (format.zeros) REQUIRE(codes.zeros[group] - format.offset == wanted.zero);
        }
    }
    CHECK(std::ranges::all_of(seen, [](int n) { return n == 1; }));
  }
}

// Checks that a device makes of the parts what it makes of the blocks, to the byte.
inline void check_packed_parts(const std::shared_ptr<const kernels::backend>& b, const joined_linear& c) {
  const std::uint64_t bytes = b->weight_bytes(b->self, c.view.type, c.view.rows, c.view.cols);
  std::vector<std::byte> wanted(bytes), got(bytes);
  const kernels::buffer blocks(b, bytes);
  b->do_pack(b->self, c.view, blocks.data());
  b->do_download(b->self, wanted.data(), blocks.data(), bytes);
  for (const std::uint64_t most : {1u, 3000u, 1u << 20}) {
    const kernels::buffer there(b, bytes);
    kernels::matrix packed = c.view;
    packed.data = there.data();
    packed.order = kernels::layout::packed;
    for (const core::tensor_part& part : c.weight->made_by->parts(c.view.rows, most)) {
      const kernels::host_buffer lane(b, part.bytes);
      const auto codes =
          c.weight->made_by->read_part(c.all, part, {lane.data(), static_cast<std::size_t>(part.bytes)});
      REQUIRE(codes.has_value());
      b->do_begin_pack(b->self, packed, {part.row, {}, &*codes}, 0);
      b->do_await_upload(b->self, 0);
    }
    b->do_download(b->self, got.data(), there.data(), bytes);
    CAPTURE(most);
    CHECK(got == wanted);
  }
}

}  // namespace weir::tests
