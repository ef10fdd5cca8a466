// Quantised weights on a device: their layout and back, bit for bit, and the operation that multiplies them.
// Skipped, saying so, where there is no device.
#ifdef WEIR_WITH_CUDA
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cuda/products/block_layout.h"
#include "kernels/host_buffer.h"
#include "tests/kernels/block_data.h"

namespace weir::tests::cuda_blocks_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

TEST_CASE("cuda: quantised weights come back from the device's layout bit for bit") {
  const auto b = cuda_device();
  if (!b) return;
  device& d = of(b->self);
  weir::tests::rng r(21);
  for_block_types([&](dtype type) {
    for (int round = 0; round < 4; ++round) {
      const std::uint32_t n = pick(r, 1, 90), k = columns_of(r, type);
      CAPTURE(n, k);
      const blocks_matrix w(r, type, n, k);
      const packed_blocks packed(b, w.view);
      const std::uint32_t first = n > 8 ? pick(r, 0, n / 8 - 1) * 8 : 0, count = n - first, margin = 64;
      const std::size_t elements = std::size_t{count} * k;
      const on_device floats(d, std::vector<float>(elements + margin, NAN));
      const on_device halves(d, std::vector<element>(elements + margin, element{0xffff}));
      unpack_blocks(d, packed.view, first, count, floats.get());
      unpack_blocks(d, packed.view, first, count, halves.get());
      std::vector<float> wanted(w.numbers.begin() + std::size_t{first} * k, w.numbers.end());
      auto got = floats.back();
      for (std::size_t i = elements; i < got.size(); ++i) REQUIRE(std::isnan(got[i]));
      got.resize(elements);
      CHECK(same_bits(got, wanted));
      const auto few = halves.back();
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < elements; ++i) wrong += few[i].bits != to_bf16(wanted[i]);
      for (std::size_t i = elements; i < few.size(); ++i) wrong += few[i].bits != 0xffff;
      CHECK(wrong == 0);
      std::vector<std::int32_t> ids{static_cast<std::int32_t>(n - 1), 0, static_cast<std::int32_t>(n / 2)};
      const on_device rows(d, std::vector<float>(ids.size() * k, NAN));
      b->run(gather{packed.view, ids, rows.get()});
      const auto read = rows.back();
      for (std::size_t i = 0; i < ids.size(); ++i)
        CHECK(std::memcmp(read.data() + i * k, w.numbers.data() + static_cast<std::size_t>(ids[i]) * k,
                          k * sizeof(float)) == 0);
    }
  });
  CHECK(d.fault == "");
}

TEST_CASE(
    "cuda: quantised weights that are uploaded in slices, or made at random, are packed as a whole matrix") {
  const auto b = cuda_device();
  if (!b) return;
  weir::tests::rng r(22);
  for_block_types([&](dtype type) {
    const std::uint32_t n = pick(r, 20, 70), k = columns_of(r, type);
    CAPTURE(n, k);
    const blocks_matrix w(r, type, n, k);
    const packed_blocks whole(b, w.view);
    const auto wanted = whole.bytes(b);
    packed_blocks sliced(b, w.view);
    sliced.memory = buffer(b, wanted.size());
    sliced.view.data = sliced.memory.data();
    const std::uint64_t row = bytes_of(type, k);
    const host_buffer lane(b, n * row);
    for (std::uint32_t at = 0; at < n;) {
      const std::uint32_t some = std::min(pick(r, 1, 13), n - at);
      std::memcpy(lane.data() + at * row, w.memory.data() + at * row, some * row);
      b->do_begin_pack(b->self, sliced.view, {at, {lane.data() + at * row, type, some, k}}, at % 3);
      at += some;
    }
    for (unsigned i = 0; i < 3; ++i) b->do_await_upload(b->self, i);
    CHECK(sliced.bytes(b) == wanted);

    std::vector<std::byte> rows(w.memory.size());
    const std::uint32_t half = n / 2;
    weir::kernels::fill_random_blocks(rows.data(), type, std::uint64_t{half} * k, 5);
    weir::kernels::fill_random_blocks(rows.data() + half * row, type, std::uint64_t{n - half} * k, 6);
    const packed_blocks made(b, {rows.data(), type, n, k});
    const buffer there(b, wanted.size());
    matrix random = w.view;
    random.data = there.data();
    b->do_fill_random(b->self, random, 0, half, false, 5);
    b->do_fill_random(b->self, random, half, n - half, false, 6);
    std::vector<std::byte> got(wanted.size());
    b->do_download(b->self, got.data(), there.data(), got.size());
    CHECK(got == made.bytes(b));
  });
  CHECK(b->fault(b->self) == nullptr);
}

TEST_CASE("cuda: linear with quantised weights equals the reference, and writes its own columns alone") {
  const auto b = cuda_device();
  if (!b) return;
  device& d = of(b->self);
  weir::tests::rng r(23);
  for_block_types([&](dtype type) {
    const std::uint32_t rows = pick(r, 1, 11), n = pick(r, 1, 90), k = columns_of(r, type), wide = n + 7;
    CAPTURE(rows, n, k);
    const blocks_matrix w(r, type, n, k);
    const packed_blocks packed(b, w.view);
    const auto x = random_floats(r, std::size_t{rows} * k), bias = random_floats(r, n);
    std::vector<float> wanted(std::size_t{rows} * n);
    reference_backend()->run(linear{w.view, bias.data(), x.data(), wanted.data(), rows});
    const on_device dx(d, x), dbias(d, bias), out(d, std::vector<float>(std::size_t{rows} * wide, NAN));
    b->run(linear{packed.view, dbias.get(), dx.get(), out.get(), rows, wide});
    const auto all = out.back();
    std::vector<float> got;
    for (std::uint32_t i = 0; i < rows; ++i) {
      got.insert(got.end(), all.begin() + i * wide, all.begin() + i * wide + n);
      for (std::uint32_t j = n; j < wide; ++j) REQUIRE(std::isnan(all[i * wide + j]));
    }
    CHECK(weir::tests::worst_difference(wanted, got) <= 3e-5);
  });
  CHECK(d.fault == "");
}

TEST_CASE("cuda: the operation multiplies x in the order of the weights' inputs, as the reference does") {
  const auto b = cuda_device();
  if (!b) return;
  weir::tests::rng r(28);
  for_block_types([&](dtype type) {
    const std::uint32_t k = columns_of(r, type), width = pick(r, 1, k), n = pick(r, 1, 90),
                        m = pick(r, 1, 20);
    const blocks_matrix w(r, type, n, k);
    const packed_blocks packed(b, w.view);
    const ordered_inputs inputs(r, b, k, width);
    const auto x = random_floats(r, std::size_t{m} * width);
    const buffer there(b, x.size() * 4), out(b, std::size_t{m} * n * 4);
    std::vector<float> wanted(std::size_t{m} * n, NAN), got(wanted);
    b->do_upload(b->self, there.data(), x.data(), there.size());
    b->do_upload(b->self, out.data(), got.data(), out.size());
    matrix on_host = w.view, on_device = packed.view;
    on_host.input_count = width;
    on_host.inputs = inputs.numbers.data();
    inputs.give(on_device, width);
    weir::kernels::reference_backend()->run(linear{on_host, nullptr, x.data(), wanted.data(), m});
    b->run(linear{on_device, nullptr, there.floats(), out.floats(), m});
    b->do_download(b->self, got.data(), out.data(), out.size());
    CAPTURE(n, k, width, m);
    CHECK(weir::tests::worst_difference(wanted, got) <= 3e-5);
  });
}

}  // namespace weir::tests::cuda_blocks_test

#endif
