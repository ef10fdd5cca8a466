// A row's bits depend on that row alone: not on its slice, its batch, where its pages lie, or the number of
// threads.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "kernels/cpu/backend.h"
#include "kernels/ops.h"
#include "tests/kernels/random_data.h"
#include "tests/support/budget.h"

namespace weir::tests::exactness_test {

using namespace weir::kernels;

namespace {

// One sequence of `tokens` tokens, whose queries, keys and values are given.
struct sequence {
  std::uint32_t heads, kv_heads, head_dim, page_tokens, tokens;
  attention_rule rule;
  kv_type type;  // of the pages
  std::vector<float> qkv;

  sequence(tests::rng& r, std::uint32_t head_dim, std::uint32_t group, std::uint32_t page_tokens,
           std::uint32_t tokens, std::uint32_t window, kv_type type = kv_type::f32)
      : kv_heads(pick(r, 1, 3)),
        head_dim(head_dim),
        page_tokens(page_tokens),
        tokens(tokens),
        rule{window, 0.3f},
        type(type) {
    heads = kv_heads * group;
    qkv = tests::random_floats(r, std::size_t{tokens} * stride(), 2);
  }
  std::uint32_t stride() const { return (heads + 2 * kv_heads) * head_dim; }
  std::uint32_t q_width() const { return heads * head_dim; }
  std::uint32_t pages() const { return (tokens + page_tokens - 1) / page_tokens; }
};

// A sequence's run through a backend, in calls of any number of rows. Its pages lie in any order, among pages
// of others.
class run {
 public:
  run(const sequence& s, const backend& b, tests::rng& r) : s_(s), b_(b) {
    std::vector<std::int32_t> all(s.pages() + 7);
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), r);
    pages_.assign(all.begin(), all.begin() + s.pages());
    keys_.resize(all.size() * s.kv_heads * s.page_tokens * kv_row_bytes(s.type, s.head_dim));
    values_.resize(keys_.size());
    make_stale(static_cast<std::uint32_t>(all.size()), r);
    out_ = tests::poison(std::size_t{s.tokens} * s.q_width());
  }

  // Computes rows from `position` on, in one call. `cuts`: the number of rows of each slice.
  void take(std::uint32_t position, const std::vector<std::uint32_t>& cuts) {
    std::vector<kv_slice> slices;
    std::uint32_t row = 0;
    for (const std::uint32_t rows : cuts) {
      slices.push_back({row, rows, position + row, pages_.data()});
      row += rows;
    }
    const float* q = s_.qkv.data() + std::size_t{position} * s_.stride();
    const float *k = q + s_.q_width(), *v = k + s_.kv_heads * s_.head_dim;
    b_.run(kv_write{k, v, s_.stride(), view(), slices});
    b_.run(kernels::attention{q, s_.stride(), s_.heads, view(), slices, s_.rule,
                              out_.data() + std::size_t{position} * s_.q_width()});
  }
  const std::vector<float>& out() const { return out_; }

 private:
  kv_pages view() {
    return {keys_.data(), values_.data(), s_.kv_heads, s_.head_dim, s_.page_tokens, s_.type};
  }

  // Fills all pages with finite numbers, as earlier owners would leave there.
  void make_stale(std::uint32_t pages, tests::rng& r) {
    std::vector<std::int32_t> all(pages);
    std::iota(all.begin(), all.end(), 0);
    const std::uint32_t width = s_.kv_heads * s_.head_dim;
    const auto old = tests::random_floats(r, std::size_t{pages} * s_.page_tokens * width, 30);
    const kv_slice slice{0, pages * s_.page_tokens, 0, all.data()};
    b_.run(kv_write{old.data(), old.data(), width, view(), {&slice, 1}});
  }

  const sequence& s_;
  const backend& b_;
  std::vector<std::int32_t> pages_;
  std::vector<std::byte> keys_, values_;
  std::vector<float> out_;
};

std::vector<float> in_one(const sequence& s, const backend& b, tests::rng& r) {
  run whole(s, b, r);
  whole.take(0, {s.tokens});
  return whole.out();
}

std::vector<float> one_by_one(const sequence& s, const backend& b, tests::rng& r) {
  run single(s, b, r);
  for (std::uint32_t p = 0; p < s.tokens; ++p) single.take(p, {1});
  return single.out();
}

// Calls of random lengths, each cut into slices at random.
std::vector<float> at_random(const sequence& s, const backend& b, tests::rng& r) {
  run chunked(s, b, r);
  for (std::uint32_t p = 0; p < s.tokens;) {
    const std::uint32_t rows = std::min(s.tokens - p, pick(r, 1, 150));
    std::vector<std::uint32_t> cuts;
    for (std::uint32_t left = rows; left > 0; left -= cuts.back()) cuts.push_back(pick(r, 1, left));
    chunked.take(p, cuts);
    p += rows;
  }
  return chunked.out();
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}
constexpr std::size_t none = ~std::size_t{0};  // no row differs

void check_all_ways(const sequence& s, const simd_kernels& simd, tests::rng& r) {
  const auto one = make_cpu_backend(1, simd, false), two = make_cpu_backend(2, simd, false),
             five = make_cpu_backend(5, simd, false);
  const auto wanted = in_one(s, *one, r);
  CAPTURE(simd.name, name(s.type), s.heads, s.kv_heads, s.head_dim, s.page_tokens, s.tokens, s.rule.window,
          s.rule.cap, s.rule.growth);
  CHECK(std::none_of(wanted.begin(), wanted.end(), [](float x) { return std::isnan(x); }));
  const auto first_difference = [&](const std::vector<float>& got) {
    const auto at = std::mismatch(got.begin(), got.end(), wanted.begin(), same_bits).first - got.begin();
    return static_cast<std::size_t>(at) == got.size() ? none : static_cast<std::size_t>(at) / s.q_width();
  };
  CHECK(first_difference(in_one(s, *two, r)) == none);
  CHECK(first_difference(in_one(s, *five, r)) == none);
  CHECK(first_difference(one_by_one(s, *two, r)) == none);
  CHECK(first_difference(one_by_one(s, *five, r)) == none);
  CHECK(first_difference(at_random(s, *two, r)) == none);
}

}  // namespace

TEST_CASE("a row's attention has the same bits however its prompt is cut, for every head size and group") {
  for (const simd_kernels* simd : simd_choices()) {
    tests::rng r(1);
    // With a small budget each head size has only some of the groups; all sizes together have all groups.
    const std::uint32_t every = 8 / std::min(8u, 2 * tests::rounds(4));
    std::uint32_t first = 0;
    for (const std::uint32_t head_dim : {32u, 64u, 80u, 96u, 128u, 256u})
      for (std::uint32_t group = 1 + first++ % every; group <= 8; group += every)
        check_all_ways(sequence(r, head_dim, group, 64, pick(r, 65, 150), pick(r, 0, 2) ? 0 : pick(r, 1, 90)),
                       *simd, r);
  }
}

TEST_CASE("a row's attention has the same bits however its prompt is cut, for every type of pages") {
  for (const simd_kernels* simd : simd_choices()) {
    tests::rng r(4);
    for (const kv_type type : {kv_type::bf16, kv_type::fp8, kv_type::q8})
      for (const std::uint32_t head_dim : {24u, 64u, 80u, 128u})
        for (const std::uint32_t group : {1u, 4u, 7u})
          check_all_ways(
              sequence(r, head_dim, group, 64, pick(r, 65, 150), pick(r, 0, 2) ? 0 : pick(r, 1, 90), type),
              *simd, r);
  }
}

TEST_CASE("a row's attention has the same bits where it is computed in parts") {
  for (const simd_kernels* simd : simd_choices()) {
    tests::rng r(2);
    for (const std::uint32_t window : {0u, 100u, 300u})
      for (const std::uint32_t page_tokens : {16u, 32u})
        check_all_ways(
            sequence(r, 20 + pick(r, 0, 6) * 2, pick(r, 1, 9), page_tokens, pick(r, 500, 700), window), *simd,
            r);
    for (const kv_type type : {kv_type::bf16, kv_type::fp8, kv_type::q8})
      check_all_ways(sequence(r, 32, pick(r, 1, 6), 16, pick(r, 500, 700), pick(r, 0, 1) * 300, type), *simd,
                     r);
  }
}

TEST_CASE("a row's attention has the same bits with scores that are capped and grow") {
  for (const simd_kernels* simd : simd_choices()) {
    tests::rng r(5);
    for (const kv_type type : {kv_type::f32, kv_type::bf16, kv_type::fp8, kv_type::q8})
      for (const std::uint32_t head_dim : {64u, 256u})
        for (const std::uint32_t window : {0u, 70u}) {
          sequence s(r, head_dim, pick(r, 1, 4), 16, pick(r, 140, 300), window, type);
          s.rule.cap = 5;
          s.rule.growth = 0.2f, s.rule.growth_unit = 50;
          check_all_ways(s, *simd, r);
        }
  }
}

TEST_CASE("a group of more query heads than a tile takes is cut") {
  tests::rng r(3);
  for (const simd_kernels* simd : simd_choices()) {
    const sequence s(r, 8, 150, 16, 40, 0);
    const auto b = make_cpu_backend(2, *simd, false);
    CHECK(tests::worst_difference(in_one(s, *reference_backend(), r), in_one(s, *b, r)) <= 3e-6);
    check_all_ways(s, *simd, r);
  }
}

}  // namespace weir::tests::exactness_test
