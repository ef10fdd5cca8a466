#include "kernels/buffer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/kernels/random_data.h"

namespace weir::tests::buffer_test {

using namespace weir::kernels;

TEST_CASE("a buffer is zeroed, aligned, and gives its memory back") {
  static int held = 0;
  auto counting = std::make_shared<backend>(*reference_backend());
  counting->do_allocate = [](void* self, std::uint64_t bytes) {
    ++held;
    return reference_backend()->do_allocate(self, bytes);
  };
  counting->do_free = [](void* self, void* at, std::uint64_t bytes) {
    --held;
    reference_backend()->do_free(self, at, bytes);
  };
  {
    buffer a(counting, 70001), moved;
    CHECK(a.size() == 70001);
    CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 256 == 0);
    CHECK(std::all_of(a.data(), a.data() + a.size(), [](std::byte b) { return b == std::byte{0}; }));
    moved = std::move(a);
    CHECK(moved.size() == 70001);
    moved = buffer(counting, 5);
    CHECK(moved.size() == 5);
  }
  CHECK(held == 0);
}

TEST_CASE("a buffer of more than there is has no memory") {
  const buffer b(reference_backend(), std::uint64_t{1} << 60);
  CHECK(b.data() == nullptr);
  CHECK(b.size() == 0);
}

TEST_CASE("products and rows of a packed matrix are those of its rows") {
  tests::rng r(1);
  for (const auto& b : {reference_backend(), cpu_backend(2)})
    for (const dtype type : {dtype::f32, dtype::bf16, dtype::f16}) {
      const std::uint32_t n = pick(r, 1, 300), k = pick(r, 1, 300), rows = pick(r, 1, 40);
      const tests::random_matrix w(r, type, n, k);
      const buffer memory(b, b->weight_bytes(b->self, type, n, k));
      REQUIRE(memory.size() >= w.view.bytes());
      b->do_pack(b->self, w.view, memory.data());
      matrix packed = w.view;
      packed.data = memory.data();
      packed.order = layout::packed;
      const auto x = tests::random_floats(r, std::size_t{rows} * k);
      auto wanted = tests::poison(std::size_t{rows} * n), got = wanted;
      reference_backend()->run(linear{w.view, nullptr, x.data(), wanted.data(), rows});
      b->run(linear{packed, nullptr, x.data(), got.data(), rows});
      CAPTURE(b->name, name(type), n, k, rows);
      CHECK(tests::worst_difference(wanted, got) <= 3e-5);
      const std::int32_t ids[] = {0, static_cast<std::int32_t>(n - 1)};
      auto row = tests::poison(2 * k), same = row;
      reference_backend()->run(gather{w.view, ids, row.data()});
      b->run(gather{packed, ids, same.data()});
      CHECK(row == same);
    }
}

}  // namespace weir::tests::buffer_test
