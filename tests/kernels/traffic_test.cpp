#include "kernels/traffic.h"

#include <catch2/catch.hpp>

namespace weir::tests::traffic_test {

using namespace weir::kernels;

TEST_CASE("a product moves its weights once, whatever the batch") {
  const matrix w{nullptr, dtype::bf16, 1000, 500};
  const traffic one = traffic_of(linear{w, nullptr, nullptr, nullptr, 1});
  const traffic eight = traffic_of(linear{w, nullptr, nullptr, nullptr, 8});
  CHECK(one == traffic{1000 * 500 * 2 + (500 + 1000) * 4, 2 * 1000 * 500});
  CHECK(eight == traffic{1000 * 500 * 2 + 8 * (500 + 1000) * 4, 8 * 2 * 1000 * 500});
  matrix ordered = w;
  ordered.input_count = 490;
  CHECK(traffic_of(linear{ordered, nullptr, nullptr, nullptr, 1}).bytes == one.bytes - 10 * 4 + 500 * 4);
  const float bias = 0;
  CHECK(traffic_of(linear{w, &bias, nullptr, nullptr, 1}).bytes == one.bytes + 1000 * 4);
}

TEST_CASE(
    "attention reads a sequence's keys and values once for all query heads, and no more than the window") {
  kv_pages kv;
  kv.heads = 2;
  kv.head_dim = 16;
  kv.page_tokens = 64;
  const kv_slice slices[] = {{0, 1, 99, nullptr}, {1, 3, 0, nullptr}};
  const traffic all = traffic_of(attention{nullptr, 0, 8, kv, slices, {}, nullptr});
  const std::uint64_t rows = 2 * 4 * 8 * 16 * 4;  // queries and outputs
  CHECK(all.bytes == rows + 2 * (100 + 3) * 2 * 16 * 4);
  CHECK(all.flops == 4 * (100 + 1 + 2 + 3) * 8 * 16);
  const traffic window = traffic_of(attention{nullptr, 0, 8, kv, slices, {2, 1}, nullptr});
  CHECK(window.bytes == rows + 2 * (2 + 3) * 2 * 16 * 4);
  CHECK(window.flops == 4 * (2 + 1 + 2 + 2) * 8 * 16);
  const float sinks[8] = {};
  CHECK(traffic_of(attention{nullptr, 0, 8, kv, slices, {}, nullptr, sinks}).bytes == all.bytes + 8 * 4);
  kv.head_dim = 64;
  kv.type = kv_type::q8;
  CHECK(traffic_of(attention{nullptr, 0, 8, kv, slices, {}, nullptr}).bytes ==
        4 * rows + 2 * (100 + 3) * 2 * (64 + 2 * 2));
  CHECK(traffic_of(kv_write{nullptr, nullptr, 0, kv, slices}).bytes == 2 * 4 * 2 * (64 * 4 + 64 + 2 * 2));
}

TEST_CASE("products of experts move the weights of those that are used, once") {
  const expert_matrices w{{nullptr, dtype::bf16, 100, 50}, 16, 10240};
  const traffic eight = traffic_of(expert_linear{w, nullptr, nullptr, nullptr, nullptr, 8, 4}, 5);
  CHECK(eight == traffic{5 * 100 * 50 * 2 + (2 * 50 + 8 * 100 + 8) * 4, 8 * 2 * 100 * 50});
  const float some = 0;
  CHECK(traffic_of(expert_linear{w, &some, nullptr, nullptr, nullptr, 8, 4}, 5).bytes ==
        eight.bytes + 5 * 100 * 4);
  CHECK(traffic_of(expert_linear{w, nullptr, nullptr, nullptr, nullptr, 8, 1}, 5).bytes ==
        eight.bytes + 6 * 50 * 4);
  const expert_matrices blocks{{nullptr, dtype::mxfp4, 100, 64}, 16, 10240};
  CHECK(traffic_of(expert_linear{blocks, nullptr, nullptr, nullptr, nullptr, 8, 1}, 8).bytes ==
        8 * 100 * 64 / 32 * 17 + 8 * (64 + 100 + 1) * 4);
}

TEST_CASE("a router moves its matrix once, and a mixture what its experts made") {
  route r;
  r.how.experts = 16, r.how.chosen = 4;
  r.rows = 3, r.width = 10;
  CHECK(traffic_of(r) == traffic{(16 * 10 + 3 * 10 + 3 * 8) * 4, 2 * 3 * 10 * 16});
  float some = 0;
  r.bias = r.choice_bias = r.shared = &some;
  CHECK(traffic_of(r) == traffic{(17 * 10 + 3 * 10 + 2 * 16 + 3 * 9) * 4, 2 * 3 * 10 * 17});
  mix_experts m;
  m.rows = 3, m.width = 10, m.chosen = 4;
  CHECK(traffic_of(m) == traffic{(3 * 10 * 5 + 3 * 4) * 4, 2 * 3 * 10 * 4});
  m.shared = m.gate = &some;
  CHECK(traffic_of(m) == traffic{(3 * 10 * 6 + 3 * 4 + 3) * 4, 2 * 3 * 10 * 5});
}

TEST_CASE("the small operations move each element in and out once") {
  const std::int32_t ids[] = {1, 2, 3};
  CHECK(traffic_of(gather{{nullptr, dtype::f16, 9, 10}, ids, nullptr}).bytes == 3 * 10 * (2 + 4) + 3 * 4);
  CHECK(traffic_of(row_norm{nullptr, nullptr, nullptr, 3, 10, 0}).bytes == (2 * 30 + 10) * 4);
  const float some = 0;
  CHECK(traffic_of(row_norm{nullptr, nullptr, nullptr, 3, 10, 0, true, &some}).bytes == (2 * 30 + 20) * 4);
  CHECK(traffic_of(head_norm{nullptr, nullptr, 3, 99, 2, 10, 0}).bytes == (2 * 60 + 10) * 4);
  CHECK(traffic_of(head_norm{nullptr, nullptr, 3, 99, 2, 10, 0, false, 10}).bytes == (2 * 60 + 20) * 4);
  CHECK(traffic_of(rotary{nullptr, nullptr, nullptr, 3, 99, 2, 10, 10}).bytes == (2 * 60 + 30) * 4);
  CHECK(traffic_of(rotary{nullptr, nullptr, nullptr, 3, 99, 2, 10, 4}).bytes == (2 * 24 + 12) * 4);
  CHECK(traffic_of(activate{nullptr, nullptr, 3, 10}).bytes == 3 * 30 * 4);
  CHECK(traffic_of(activate{nullptr, nullptr, 3, 10, activation::relu2, false}).bytes == 2 * 30 * 4);
  CHECK(traffic_of(sigmoid_mul{nullptr, nullptr, 3, 10, 99}).bytes == 3 * 30 * 4);
  CHECK(traffic_of(soft_cap{nullptr, 30, 2, 5}) == traffic{2 * 30 * 4, 3 * 30});
  CHECK(traffic_of(add{nullptr, nullptr, 30}) == traffic{3 * 30 * 4, 30});
  traffic sum;
  sum += traffic_of(add{nullptr, nullptr, 1});
  sum += traffic_of(add{nullptr, nullptr, 2});
  CHECK(sum == traffic{36, 3});
}

}  // namespace weir::tests::traffic_test
