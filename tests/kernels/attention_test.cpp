// kv_write and attention, on pages of every type that lie anywhere, for batches of many sequences at once.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/cpu/backend.h"
#include "kernels/ops.h"
#include "tests/kernels/random_data.h"
#include "tests/kernels/stored_numbers.h"
#include "tests/support/seed.h"

namespace weir::tests::attention_test {

using namespace weir::kernels;

namespace {

constexpr kv_type types[] = {kv_type::f32, kv_type::bf16, kv_type::fp8, kv_type::q8};
static_assert(std::size(types) == kv_type_count);

// Poisoned: bytes of 0xff are a NaN in every type, or the scale of one.
struct paged_memory {
  std::vector<std::byte> keys, values;
  kv_pages view;

  paged_memory(std::uint32_t pages, std::uint32_t heads, std::uint32_t head_dim, std::uint32_t page_tokens,
               kv_type type)
      : keys(pages * heads * page_tokens * kv_row_bytes(type, head_dim), std::byte{0xff}), values(keys) {
    view = {keys.data(), values.data(), heads, head_dim, page_tokens, type};
  }
};

// Sequences whose earlier tokens (`history`) are written first, in one pass. Their last rows are the batch.
struct scene {
  std::uint32_t heads, group, head_dim, page_tokens, stride;
  std::vector<std::vector<std::int32_t>> pages;
  std::vector<kv_slice> history, slices;
  std::vector<float> history_kv, qkv;
  std::uint32_t rows = 0, history_rows = 0, page_count = 0;

  explicit scene(tests::rng& r, std::uint32_t sequences) {
    heads = pick(r, 1, 4);
    group = pick(r, 1, 8);
    head_dim = pick(r, 0, 1) ? pick(r, 1, 8) * 32 : pick(r, 4, 128) * 2;
    page_tokens = 16 * pick(r, 1, 4);
    stride = (heads * group + 2 * heads) * head_dim + pick(r, 0, 5);
    std::vector<std::uint32_t> lengths;
    for (std::uint32_t s = 0; s < sequences; ++s) {
      const std::uint32_t before = pick(r, 0, 2) ? pick(r, 0, 200) : 0,
                          now = pick(r, 0, 1) ? 1 : pick(r, 1, 40);
      slices.push_back({rows, now, before, nullptr});
      if (before) history.push_back({history_rows, before, 0, nullptr});
      rows += now;
      history_rows += before;
      lengths.push_back(before + now);
    }
    give_pages(r, lengths);
    history_kv = tests::random_floats(r, std::size_t{history_rows} * stride);
    qkv = tests::random_floats(r, std::size_t{rows} * stride);
  }

  void give_pages(tests::rng& r, const std::vector<std::uint32_t>& lengths) {
    for (const std::uint32_t n : lengths) page_count += (n + page_tokens - 1) / page_tokens;
    std::vector<std::int32_t> all(page_count);
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), r);
    auto next = all.begin();
    for (const std::uint32_t n : lengths) {
      const auto count = (n + page_tokens - 1) / page_tokens;
      pages.emplace_back(next, next + count);
      next += count;
    }
    std::size_t h = 0;
    for (std::size_t s = 0; s < slices.size(); ++s) {
      slices[s].pages = pages[s].data();
      if (slices[s].position) history[h++].pages = pages[s].data();
    }
  }

  std::uint32_t q_width() const { return heads * group * head_dim; }

  // REQUIRES: memory made for this scene
  void write(const backend& b, paged_memory& memory) const {
    const std::uint32_t k = q_width(), v = k + heads * head_dim;
    if (history_rows)
      b.run(kv_write{history_kv.data() + k, history_kv.data() + v, stride, memory.view, history});
    b.run(kv_write{qkv.data() + k, qkv.data() + v, stride, memory.view, slices});
  }

  attention_rule plain_rule(std::uint32_t window) const {
    return {window, 1.0f / std::sqrt(static_cast<float>(head_dim))};
  }

  std::vector<float> attend(const backend& b, paged_memory& memory, const attention_rule& rule,
                            const float* sinks = nullptr) const {
    auto out = tests::poison(std::size_t{rows} * q_width());
    b.run(attention{qkv.data(), stride, heads * group, memory.view, slices, rule, out.data(), sinks});
    return out;
  }
  std::vector<float> attend(const backend& b, paged_memory& memory, std::uint32_t window) const {
    return attend(b, memory, plain_rule(window));
  }

  paged_memory memory(kv_type type = kv_type::f32) const {
    return {page_count, heads, head_dim, page_tokens, type};
  }

  // Puts numbers that are hard to round among the keys and values of the batch.
  void make_some_hard(tests::rng& r) {
    constexpr float hard[] = {0.0f,    -0.0f,    448.0f, 463.0f,   1e30f,     -3e38f,
                              1e-3f,   0x1p-10f, 1e-40f, 1e-30f,   0x1.01p0f, 0x1.03p0f,
                              1.0625f, 6e4f,     -7e7f,  INFINITY, -INFINITY, NAN};
    for (float& x : qkv)
      if (pick(r, 0, 9) == 0) x = hard[pick(r, 0, std::size(hard) - 1)];
  }
};

}  // namespace

TEST_CASE("cpu: kv_write fills the same slots as the reference, and no others") {
  tests::rng r(1);
  const auto defined = reference_backend();
  for (const simd_kernels* simd : simd_choices())
    for (const kv_type type : types)
      for (int round = 0; round < 10; ++round) {
        scene s(r, pick(r, 1, 5));
        if (round % 2) s.make_some_hard(r);
        auto wanted = s.memory(type), got = s.memory(type);
        s.write(*defined, wanted);
        s.write(*make_cpu_backend(3, *simd, false), got);
        CAPTURE(simd->name, name(type), s.head_dim, round);
        CHECK(wanted.keys == got.keys);
        CHECK(wanted.values == got.values);
      }
}

TEST_CASE("cpu: attention equals the reference over random shapes, windows and pages") {
  const auto defined = reference_backend();
  for (const simd_kernels* simd : simd_choices())
    for (const unsigned threads : {1u, 3u}) {
      const auto b = make_cpu_backend(threads, *simd, false);
      tests::rng r(2);
      for (int round = 0; round < 32; ++round) {
        const scene s(r, pick(r, 1, 5));
        const std::uint32_t window = pick(r, 0, 1) ? pick(r, 1, 100) : 0;
        const kv_type type = types[round % std::size(types)];
        attention_rule rule = s.plain_rule(window);
        if (pick(r, 0, 2) == 0) rule.cap = static_cast<float>(pick(r, 1, 20));
        if (pick(r, 0, 2) == 0) rule.growth = 0.1f, rule.growth_unit = pick(r, 1, 70);
        auto memory = s.memory(type);
        s.write(*b, memory);
        CAPTURE(b->name, threads, name(type), s.heads, s.group, s.head_dim, s.page_tokens, s.rows, window,
                rule.cap, rule.growth, rule.growth_unit);
        CHECK(tests::worst_difference(s.attend(*defined, memory, rule), s.attend(*b, memory, rule)) <= 3e-6);
        const auto sinks = tests::random_floats(r, s.heads * s.group, 3);
        CHECK(tests::worst_difference(s.attend(*defined, memory, rule, sinks.data()),
                                      s.attend(*b, memory, rule, sinks.data())) <= 3e-6);
      }
    }
}

TEST_CASE("a sink is one more score, neither scaled nor capped, without a value") {
  tests::rng r(static_cast<std::uint32_t>(tests::drawn_seed(8)));
  for (const auto& b : {reference_backend(), cpu_backend(2)})
    for (int round = 0; round < 6; ++round) {
      const scene s(r, pick(r, 1, 3));
      auto memory = s.memory();
      s.write(*b, memory);
      attention_rule rule = s.plain_rule(pick(r, 0, 1) * 20);
      if (pick(r, 0, 1)) rule.cap = 2;
      const std::uint32_t heads = s.heads * s.group;
      auto sinks = tests::random_floats(r, heads, 2);
      const auto without = s.attend(*b, memory, rule), with = s.attend(*b, memory, rule, sinks.data());
      // The total of a row follows from how much less it is with a sink: what is left is total / (total +
      // e^sink). It is the same for another sink.
      for (float& x : sinks) x += 1;
      const auto more = s.attend(*b, memory, rule, sinks.data());
      for (std::size_t i = 0; i < with.size(); ++i) {
        if (std::abs(without[i]) < 0.05f) continue;
        const double left = with[i] / without[i], next = more[i] / without[i];
        REQUIRE((left > 0 && left < 1));
        if (left > 0.98 || left < 0.02) continue;
        const double share = (1 - left) / left, wanted = 1 / (1 + share * std::exp(1.0));
        REQUIRE(next == Approx(wanted).epsilon(2e-3));
      }
      sinks.assign(heads, -1e4f);  // takes nothing
      CHECK(tests::worst_difference(without, s.attend(*b, memory, rule, sinks.data())) <= 1e-6);
      sinks.assign(heads, 1e4f);  // takes everything
      for (const float x : s.attend(*b, memory, rule, sinks.data())) REQUIRE(std::abs(x) <= 1e-30f);
      sinks.assign(heads, std::nanf(""));
      for (const float x : s.attend(*b, memory, rule, sinks.data())) REQUIRE(std::isnan(x));
    }
}

TEST_CASE("with a sink, attention to one position gives a part of that position's values") {
  tests::rng r(static_cast<std::uint32_t>(tests::drawn_seed(9)));
  for (const auto& b : {reference_backend(), cpu_backend(2)}) {
    const scene s(r, 3);
    auto memory = s.memory();
    s.write(*b, memory);
    const auto sinks = tests::random_floats(r, s.heads * s.group);
    const attention_rule rule = s.plain_rule(1);
    const auto out = s.attend(*b, memory, rule, sinks.data());
    const std::uint32_t k = s.q_width(), v = k + s.heads * s.head_dim;
    for (std::uint32_t row = 0; row < s.rows; ++row)
      for (std::uint32_t h = 0; h < s.heads * s.group; ++h) {
        const float* at = s.qkv.data() + std::size_t{row} * s.stride;
        double score = 0;
        for (std::uint32_t i = 0; i < s.head_dim; ++i)
          score += double{at[h * s.head_dim + i]} * at[k + h / s.group * s.head_dim + i] * rule.scale;
        const double share = 1 / (1 + std::exp(sinks[h] - score));
        for (std::uint32_t i = 0; i < s.head_dim; ++i)
          REQUIRE(out[row * s.q_width() + h * s.head_dim + i] ==
                  Approx(share * at[v + h / s.group * s.head_dim + i]).epsilon(1e-4).margin(1e-6));
      }
  }
}

TEST_CASE("attention over pages of a type is attention over the numbers that they store") {
  tests::rng r(5);
  for (const auto& b : {reference_backend(), cpu_backend(2)})
    for (const kv_type type : types)
      for (int round = 0; round < 4; ++round) {
        const scene s(r, pick(r, 1, 3));
        auto memory = s.memory(type), plain = s.memory();
        s.write(*b, memory);
        const auto copy = [&](const std::vector<std::byte>& from, std::vector<std::byte>& to) {
          for (std::uint32_t page = 0; page < s.page_count; ++page)
            for (std::uint32_t h = 0; h < s.heads; ++h)
              for (std::uint32_t token = 0; token < s.page_tokens; ++token) {
                const auto x =
                    tests::stored_numbers(from.data() + memory.view.place(page, h), memory.view, token);
                const std::vector<float> rounded(x.begin(), x.end());
                std::memcpy(to.data() + plain.view.place(page, h) + token * s.head_dim * sizeof(float),
                            rounded.data(), s.head_dim * sizeof(float));
              }
        };
        copy(memory.keys, plain.keys);
        copy(memory.values, plain.values);
        CAPTURE(b->name, name(type), s.heads, s.group, s.head_dim, s.rows);
        CHECK(tests::worst_difference(s.attend(*reference_backend(), plain, 0), s.attend(*b, memory, 0)) <=
              3e-6);
      }
}

TEST_CASE("cpu: a cap bounds scores of any size, and weighs tokens by what is left of them") {
  const auto defined = reference_backend();
  for (const simd_kernels* simd : simd_choices())
    for (const kv_type type : {kv_type::f32, kv_type::bf16}) {
      const auto b = make_cpu_backend(3, *simd, false);
      tests::rng r(6);
      for (const float size : {1e2f, 1e6f, 1e25f}) {  // scores beyond f32, too
        scene s(r, 3);
        // Keys of one sign: a sum of infinities of both would be NaN.
        const std::uint32_t k = s.q_width(), v = k + s.heads * s.head_dim;
        for (std::uint32_t row = 0; row < s.rows; ++row)
          for (std::uint32_t i = 0; i < v; ++i) {
            float& x = s.qkv[row * s.stride + i];
            x = i < k ? std::copysign(size, i / s.head_dim % 2 ? 1.0f : -1.0f) : size * (1 + std::abs(x));
          }
        for (std::uint32_t row = 0; row < s.history_rows; ++row)
          for (std::uint32_t i = k; i < v; ++i) {
            float& x = s.history_kv[row * s.stride + i];
            x = size * 1e-3f * std::abs(x);
          }
        auto memory = s.memory(type);
        s.write(*b, memory);
        attention_rule rule = s.plain_rule(pick(r, 0, 1) * 30);
        rule.cap = 2;
        CAPTURE(b->name, name(type), size, s.head_dim, rule.window);
        CHECK(tests::worst_difference(s.attend(*defined, memory, rule), s.attend(*b, memory, rule)) <= 3e-6);
      }
    }
}

TEST_CASE("scores grow at the positions where the rule says so") {
  const attention_rule rule{0, 0.5f, 0, 0.1f, 8};
  CHECK(rule.scale_at(7) == 0.5f);
  CHECK(rule.scale_at(8) == Approx(0.5 * (1 + 0.1 * std::log(2.0))));
  CHECK(rule.scale_at(16) == Approx(0.5 * (1 + 0.1 * std::log(3.0))));
  // A row of a longer prompt is scaled by its own position: as a plain rule with that scale.
  tests::rng r(7);
  for (const auto& b : {reference_backend(), cpu_backend(2)}) {
    const scene s(r, 2);
    auto memory = s.memory();
    s.write(*b, memory);
    attention_rule grows = s.plain_rule(0);
    grows.growth = 0.4f, grows.growth_unit = 8;
    const auto got = s.attend(*b, memory, grows);
    for (const kv_slice& slice : s.slices)
      for (std::uint32_t i = 0; i < slice.rows; ++i) {
        const kv_slice alone{0, 1, slice.position + i, slice.pages};
        const attention_rule plain{0, grows.scale_at(slice.position + i)};
        auto out = tests::poison(s.q_width());
        b->run(attention{s.qkv.data() + (slice.first_row + i) * s.stride,
                         s.stride,
                         s.heads * s.group,
                         memory.view,
                         {&alone, 1},
                         plain,
                         out.data()});
        REQUIRE(std::equal(out.begin(), out.end(), got.data() + (slice.first_row + i) * s.q_width()));
      }
  }
}

TEST_CASE("attention to one position gives that position's values") {
  tests::rng r(3);
  for (const auto& b : {reference_backend(), cpu_backend(2)}) {
    const scene s(r, 3);
    auto memory = s.memory();
    s.write(*b, memory);
    const auto out = s.attend(*b, memory, 1);  // a window of one token: itself
    const std::uint32_t v = s.q_width() + s.heads * s.head_dim;
    for (std::uint32_t row = 0; row < s.rows; ++row)
      for (std::uint32_t h = 0; h < s.heads * s.group; ++h)
        for (std::uint32_t i = 0; i < s.head_dim; ++i)
          REQUIRE(out[row * s.q_width() + h * s.head_dim + i] ==
                  Approx(s.qkv[row * s.stride + v + h / s.group * s.head_dim + i]));
  }
}

TEST_CASE(
    "a row's attention has the same bits whatever slice, batch and number of threads it is computed with") {
  tests::rng r(4);
  for (int round = 0; round < 8; ++round) {
    const auto b = round % 2 ? cpu_backend(3) : reference_backend();
    const auto single = round % 2 ? cpu_backend(1) : reference_backend();
    const scene s(r, 4);
    auto memory = s.memory(types[round / 2]);
    s.write(*b, memory);
    const auto more = tests::random_floats(r, s.heads * s.group);
    const float* sinks = round < 4 ? nullptr : more.data();
    const auto together = s.attend(*b, memory, s.plain_rule(50), sinks);
    for (const kv_slice& slice : s.slices)
      for (std::uint32_t i = 0; i < slice.rows; ++i) {
        const kv_slice alone{0, 1, slice.position + i, slice.pages};
        auto out = tests::poison(s.q_width());
        const float scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
        const float* q = s.qkv.data() + (slice.first_row + i) * s.stride;
        single->run(attention{
            q, s.stride, s.heads * s.group, memory.view, {&alone, 1}, {50, scale}, out.data(), sinks});
        const float* wanted = together.data() + (slice.first_row + i) * s.q_width();
        REQUIRE(std::equal(out.begin(), out.end(), wanted));
      }
  }
}

}  // namespace weir::tests::attention_test
