// Random linears whose groups are no runs of inputs, written by plain loops: they have the numbers that the
// loops define, bit for bit, on every host backend.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "kernels/blocks.h"
#include "tests/support/cuda_device.h"
#include "tests/support/data.h"
#include "tests/support/joined_linear.h"
#include "tests/support/through_backend.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::quantised_random_test {

using namespace weir::core;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using numbers = std::vector<u32>;

template <class T>
std::string bytes_of(const std::vector<T>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T)};
}

// Puts `value` into a stream of words that are `apart` words from one another, bit by bit.
void put(numbers& words, std::size_t first, std::size_t apart, u64 bit, u32 bits, u32 value) {
  for (u32 i = 0; i < bits; ++i, ++bit)
    if (value >> i & 1) words[first + bit / 32 * apart] |= 1u << bit % 32;
}

std::uint16_t random_scale(std::mt19937& r) {
  return static_cast<std::uint16_t>(r() % 20 ? 0x1000 + r() % 0x2800 : r() % 2 ? 0 : 1 + r() % 0x3ff);
}

// A linear as a file has it, and its weights [outputs, inputs].
struct written {
  quant_config config;
  u32 outputs, inputs;
  std::vector<tests::toy_tensor> tensors;
  std::vector<float> weights;
};

// gptq (version 2) or pack-quantized, with inputs in groups at random.
written write_groups(std::mt19937& r, quant_form form, u32 bits, u32 group, u32 outputs, u32 inputs) {
  const u32 groups = (inputs + group - 1) / group;
  const bool gptq = form == quant_form::gptq;
  const u64 along = u64{inputs} * bits, down = u64{outputs} * bits;
  const std::size_t wide = (along + 31) / 32, tall = (down + 31) / 32;
  numbers of(inputs), codes(gptq ? wide * outputs : outputs * wide), zeros(tall * groups);
  for (u32 k = 0; k < inputs; ++k) of[k] = k / group;
  std::ranges::shuffle(of, r);
  std::vector<std::uint16_t> scales(std::size_t{groups} * outputs);
  numbers z(scales.size());
  for (u32 g = 0; g < groups; ++g)
    for (u32 n = 0; n < outputs; ++n) {
      const std::size_t at = gptq ? std::size_t{g} * outputs + n : std::size_t{n} * groups + g;
      scales[at] = random_scale(r);
      z[at] = r() % (1u << bits);
      if (gptq) put(zeros, g * tall, 1, u64{n} * bits, bits, z[at]);
      if (!gptq) put(zeros, g, groups, u64{n} * bits, bits, z[at]);
    }
  written w{{form, bits, group, false, 0, 0, true}, outputs, inputs, {}, {}};
  for (u32 n = 0; n < outputs; ++n)
    for (u32 k = 0; k < inputs; ++k) {
      const u32 code = r() % (1u << bits);
      put(codes, gptq ? n : n * wide, gptq ? outputs : 1, u64{k} * bits, bits, code);
      const std::size_t at = gptq ? std::size_t{of[k]} * outputs + n : std::size_t{n} * groups + of[k];
      w.weights.push_back(kernels::from_f16(scales[at]) *
                          (static_cast<float>(code) - static_cast<float>(z[at])));
    }
  if (gptq)
    w.tensors = {{"l.qweight", "I32", {wide, outputs}, bytes_of(codes)},
                 {"l.qzeros", "I32", {groups, tall}, bytes_of(zeros)},
                 {"l.scales", "F16", {groups, outputs}, bytes_of(scales)},
                 {"l.g_idx", "I32", {inputs}, bytes_of(of)}};
  else
    w.tensors = {{"l.weight_packed", "I32", {outputs, wide}, bytes_of(codes)},
                 {"l.weight_zero_point", "I32", {tall, groups}, bytes_of(zeros)},
                 {"l.weight_scale", "F16", {outputs, groups}, bytes_of(scales)},
                 {"l.weight_shape", "I64", {2}, bytes_of(std::vector<u64>{outputs, inputs})},
                 {"l.weight_g_idx", "I32", {inputs}, bytes_of(of)}};
  return w;
}

struct exl2_part {
  u32 bits, inputs;
};

// Parts with random widths, which never rise.
std::vector<exl2_part> random_parts(std::mt19937& r) {
  numbers widths(1 + r() % 6);
  for (u32& bits : widths) bits = numbers{2, 3, 4, 5, 6, 8}[r() % 6];
  std::ranges::sort(widths, std::greater{});
  std::vector<exl2_part> parts;
  for (const u32 bits : widths) parts.push_back({bits, (bits % 2 ? 32 : 16) * static_cast<u32>(1 + r() % 4)});
  parts.back().inputs = static_cast<u32>(1 + r() % 70);  // its last word need not be full
  return parts;
}

written write_exl2(std::mt19937& r, u32 outputs) {
  const auto parts = random_parts(r);
  const u32 wide = (outputs + 31) / 32 * 32, groups = static_cast<u32>(parts.size());
  u32 inputs = 0, words = 0;
  for (const exl2_part& p : parts) inputs += p.inputs, words += (p.inputs * p.bits + 31) / 32;
  numbers order(inputs), places(inputs), codes(std::size_t{words} * wide),
      roots(std::size_t{groups} * wide / 8);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, r);
  for (u32 i = 0; i < inputs; ++i) places[order[i]] = i;
  std::vector<std::uint16_t> table, largest;
  written w{{quant_form::exl2}, outputs, inputs, {}, std::vector<float>(std::size_t{outputs} * inputs, NAN)};
  u32 word = 0, at = 0;
  for (u32 g = 0; g < groups; ++g) {
    const auto [bits, count] = parts[g];
    table.push_back(static_cast<std::uint16_t>(bits));
    table.push_back(static_cast<std::uint16_t>(word));
    largest.push_back(static_cast<std::uint16_t>(0x1000 + r() % 0x2800));
    const float unit = kernels::from_f16(kernels::to_f16(kernels::from_f16(largest[g]) / 256));
    for (u32 n = 0; n < wide; ++n) {
      const u32 root = r() % 16;
      put(roots, std::size_t{g} * wide / 8, 1, u64{n} * 4, 4, root);
      const float squared = static_cast<float>((root + 1) * (root + 1));
      const float scale = kernels::from_f16(kernels::to_f16(squared * unit));
      for (u32 i = 0; i < count; ++i) {
        const u32 code = r() % (1u << bits);
        put(codes, std::size_t{word} * wide + n, wide, u64{i} * bits, bits, code);
        if (n < outputs)
          w.weights[std::size_t{n} * inputs + order[at + i]] =
              scale * (static_cast<float>(code) - static_cast<float>(1u << (bits - 1)));
      }
    }
    word += (count * bits + 31) / 32;
    at += count;
  }
  w.tensors = {{"l.q_weight", "I32", {words, wide}, bytes_of(codes)},
               {"l.q_groups", "I16", {2 * groups}, bytes_of(table)},
               {"l.q_scale", "I32", {groups, wide / 8}, bytes_of(roots)},
               {"l.q_scale_max", "F16", {groups}, bytes_of(largest)},
               {"l.q_invperm", "I32", {inputs}, bytes_of(places)}};
  if (r() % 2) w.tensors.push_back({"l.q_perm", "I32", {inputs}, bytes_of(order)});
  return w;
}

result<tests::joined_linear> join(const written& w, const tests::temporary_dir& dir) {
  tests::write_file(dir / "model.safetensors", tests::safetensors_bytes(w.tensors));
  return tests::join_linear(dir.path(), w.config);
}

void check(const written& w) {
  CAPTURE(static_cast<int>(w.config.form), w.config.bits, w.config.group, w.outputs, w.inputs);
  const tests::temporary_dir dir;
  const auto c = join(w, dir);
  if (!c) FAIL(c.error().message);
  REQUIRE(c->weight->shape[1] == w.inputs);
  tests::check_parts(*c);
  const auto is_wanted = [&](const std::vector<float>& all) {
    const auto got = tests::in_file_order(*c, all, w.outputs);
    REQUIRE(got.size() == w.weights.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      if (std::bit_cast<u32>(got[i]) != std::bit_cast<u32>(w.weights[i])) {
        CAPTURE(i / w.inputs, i % w.inputs);
        REQUIRE(got[i] == w.weights[i]);
        REQUIRE(std::signbit(got[i]) == std::signbit(w.weights[i]));
      }
  };
  std::vector<float> all(std::size_t{c->view.rows} * c->view.cols, NAN);
  kernels::dequantise(c->view.type, c->blocks.data(), all.size(), all.data());
  is_wanted(all);
  for (const auto& b : {kernels::reference_backend(), kernels::cpu_backend(2)}) {
    is_wanted(tests::through(b, c->view));
    CHECK(tests::multiplied(b, *c, w.outputs) == w.weights);
  }
}

}  // namespace

TEST_CASE("random linears of gptq with inputs in groups at random have the numbers that plain loops define") {
  std::mt19937 r(41);
  for (const u32 bits : {2u, 3u, 4u, 8u})
    for (const u32 group : {32u, 64u, 128u})
      check(write_groups(r, quant_form::gptq, bits, group, 32 * (1 + r() % 3), 32 * (2 + r() % 10)));
}

TEST_CASE("random linears of pack-quantized in any order and of any number of inputs have theirs") {
  std::mt19937 r(42);
  for (const u32 bits : {2u, 3u, 4u, 5u, 6u, 7u, 8u})
    for (const u32 group : {32u, 128u})
      check(write_groups(r, quant_form::packed, bits, group, 1 + r() % 80, 2 + r() % 300));
}

TEST_CASE("random linears of exl2 have the numbers that plain loops define") {
  std::mt19937 r(43);
  for (int round = 0; round < 30; ++round) check(write_exl2(r, 8 + r() % 100));
}

TEST_CASE("cuda: random linears of directories are packed from their parts as from their blocks") {
  const auto b = tests::cuda_device();
  if (!b) return;
  std::mt19937 r(45);
  const auto check_packed = [&](const written& w) {
    CAPTURE(static_cast<int>(w.config.form), w.config.bits, w.config.group, w.outputs, w.inputs);
    const tests::temporary_dir dir;
    const auto c = join(w, dir);
    if (!c) FAIL(c.error().message);
    tests::check_packed_parts(b, *c);
  };
  for (const u32 bits : {2u, 3u, 4u, 8u})
    check_packed(write_groups(r, quant_form::gptq, bits, 64, 32 * (1 + r() % 3), 32 * (2 + r() % 10)));
  for (const u32 bits : {2u, 3u, 4u, 5u, 6u, 7u, 8u})
    check_packed(write_groups(r, quant_form::packed, bits, 32, 1 + r() % 80, 2 + r() % 300));
  for (int round = 0; round < 10; ++round) check_packed(write_exl2(r, 8 + r() % 100));
}

TEST_CASE("tensors of exl2 that do not fit are refused by name") {
  std::mt19937 r(44);
  const auto refusal = [&](const auto& change) {
    written w = write_exl2(r, 40);
    change(w.tensors);
    const tests::temporary_dir dir;
    tests::write_file(dir / "model.safetensors", tests::safetensors_bytes(w.tensors));
    const auto c = tests::join_linear(dir.path(), w.config);
    return c ? "accepted" : c.error().message;
  };
  using tensors = std::vector<tests::toy_tensor>;
  using Catch::Matchers::Contains;
  CHECK(refusal([](tensors&) {}) == "accepted");
  for (const std::size_t i : {1, 2, 3, 4}) {
    std::string name;
    const auto without = refusal([&](tensors& t) {
      name = t[i].name;
      t.erase(t.begin() + static_cast<std::ptrdiff_t>(i));
    });
    CHECK_THAT(without, Contains(name) && Contains("is missing"));
    CHECK_THAT(refusal([&](tensors& t) { t[i].dtype = i == 1 || i == 3 ? "BF16" : "F32"; }),
               Contains(name) && Contains(i == 1 || i == 3 ? "is BF16, not" : "is F32, not"));
  }
  CHECK_THAT(refusal([](tensors& t) {
               t[1].shape = {1, t[1].shape[0]};
             }),
             Contains("'l.q_groups'") && Contains("is no vector"));
  CHECK_THAT(refusal([](tensors& t) { t[4].bytes[0] ^= 1; }), Contains("l.q_invperm"));
  CHECK_THAT(refusal([](tensors& t) {
               if (t.size() == 5) t.push_back({"l.q_perm", "I32", t[4].shape, t[4].bytes});
               t[5].bytes[0] ^= 1;
             }),
             Contains("'l.q_perm' is not the inverse of q_invperm"));
}

}  // namespace weir::tests::quantised_random_test
