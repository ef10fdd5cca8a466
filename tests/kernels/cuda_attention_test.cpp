// The cuda backend's attention over its pages, alone: prompts in blocks and single rows, against a loop in
// double. Contexts are long enough that blocks share them. Skipped, saying so, where there is no device.
#ifdef WEIR_WITH_CUDA
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <numeric>

#include "kernels/cuda/layers.h"
#include "kernels/tensor.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/random_data.h"

namespace weir::tests::cuda_attention_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

namespace {

struct slice {
  int position, rows;
};

using elements = std::vector<element>;

constexpr int page_rows = cuda::page_tokens;

elements random_elements(tests::rng& r, dtype type, std::size_t count) {
  elements v(count);
  std::normal_distribution<float> normal;
  for (auto& x : v) x = tests::rounded(type, normal(r));
  return v;
}

// Slices of sequences whose keys and values lie in pages in any order. Where `lines` is 0, every slice is one
// row, for decode_attention; else the slices are for prefill_attention, in blocks of `lines` lines.
struct scene {
  dtype type;
  head_shape h;
  std::uint32_t window;
  std::vector<slice> slices;
  bool single;
  elements keys, values, qkv;  // keys and values by page, as on the device
  std::vector<std::int32_t> pages, pages_at, row_slice, row_position;
  std::vector<prefill_block> blocks;
  std::vector<decode_row> lone;
  std::uint32_t context = 0;

  scene(tests::rng& r, dtype t, head_shape shape, std::uint32_t w, std::vector<slice> s, std::uint32_t lines)
      : type(t), h(shape), window(w), slices(std::move(s)) {
    single = lines == 0;
    const int most = single ? 1 : static_cast<int>(prefill_tokens(h, lines));
    std::int32_t count = 0, row = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const auto [position, rows] = slices[i];
      pages_at.push_back(count);
      for (int j = 0; j < rows; ++j) {
        row_slice.push_back(static_cast<std::int32_t>(i));
        row_position.push_back(position + j);
      }
      for (int j = 0; j < rows; j += most) {
        blocks.push_back({row + j, std::min(most, rows - j), position + j, count});
        lone.push_back({row + j, position + j, count});
      }
      row += rows;
      count += (position + rows + page_rows - 1) / page_rows;
      context = std::max(context, static_cast<std::uint32_t>(position + rows));
    }
    blocks.push_back({0, 0, -1, 0});  // an empty block, as one that fills up a batch class
    pages.resize(static_cast<std::size_t>(count));
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), r);
    keys = random_elements(r, type, std::size_t(count) * h.kv_heads * page_rows * h.head_dim);
    values = random_elements(r, type, keys.size());
    qkv = random_elements(r, type, static_cast<std::size_t>(row) * h.width());
  }

  float at(const elements& in, std::int32_t first, int token, std::uint32_t head, int i) const {
    const auto page = static_cast<std::size_t>(pages[static_cast<std::size_t>(first + token / page_rows)]);
    const int units = static_cast<int>(h.head_dim) / 8;
    const int place = unit_at(i / 8, token % page_rows, units, page_rows) * 8 + i % 8;
    return tests::number(
        type, in[(page * h.kv_heads + head) * page_rows * h.head_dim + static_cast<std::size_t>(place)]);
  }

  // The attention of one row and head, by the definition: [head_dim].
  std::vector<double> wanted(std::size_t row, std::uint32_t head) const {
    const std::int32_t first = pages_at[static_cast<std::size_t>(row_slice[row])], to = row_position[row];
    const auto w = static_cast<std::int32_t>(window);
    const std::int32_t from = w != 0 && to + 1 > w ? to + 1 - w : 0;
    const std::uint32_t kv_head = head / (h.heads / h.kv_heads);
    const int width = static_cast<int>(h.head_dim);
    std::vector<double> weights, out(h.head_dim);
    double largest = -1e300, total = 0;
    for (std::int32_t t = from; t <= to; ++t) {
      double sum = 0;
      for (int i = 0; i < width; ++i)
        sum += double{tests::number(type,
                                   qkv[row * h.width() + head * h.head_dim + static_cast<std::size_t>(i)])} *
               at(keys, first, t, kv_head, i);
      weights.push_back(sum / std::sqrt(double(width)));
      largest = std::max(largest, weights.back());
    }
    for (double& x : weights) total += x = std::exp(x - largest);
    for (std::int32_t t = from; t <= to; ++t)
      for (int i = 0; i < width; ++i)
        out[static_cast<std::size_t>(i)] +=
            weights[static_cast<std::size_t>(t - from)] / total * at(values, first, t, kv_head, i);
    return out;
  }

  // The largest difference over some rows, in units of the largest value. `fresh`: each row's own key and
  // value lie in qkv alone, and the kernel stores them. `listed`: the rows are those of list_decodes().
  double difference(device& d, tests::rng& r, std::uint32_t lines, bool fresh, bool listed = false) {
    const std::size_t rows = row_slice.size();
    if (fresh) take_out_fresh();
    const on_device k(d, keys), v(d, values), q(d, qkv);
    const on_device out(d, elements(rows * h.heads * h.head_dim, element{0x7fc0}));
    const on_device page_list(d, pages);
    const on_device block_list(d, blocks);
    std::vector<decode_row> entries = lone;
    if (listed) {
      entries.resize(most_listed(d, h, static_cast<std::uint32_t>(lone.size())));
      const std::uint32_t made = list_decodes(d, h, lone, entries.data());
      REQUIRE(made >= lone.size());
      REQUIRE(made <= entries.size());
      entries.resize(made);
    }
    const on_device entry_list(d, entries);
    const on_device count(d, std::vector<std::int32_t>{static_cast<std::int32_t>(entries.size())});
    const on_device cos(d, std::vector<float>(rows * h.head_dim / 2, 1)),
        sin(d, std::vector<float>(rows * h.head_dim / 2, 0));
    rows_view view{};
    view.pages = page_list.get();
    view.blocks = block_list.get();
    view.decode_rows = entry_list.get();
    view.listed = listed ? count.get() : nullptr;
    view.rows = static_cast<std::uint32_t>(rows);
    view.context = context;
    view.block_lines = lines;
    const attention_args a{h,
                           type,
                           {k.get(), v.get()},
                           q.get(),
                           out.get(),
                           {window, 1.0f / std::sqrt(static_cast<float>(h.head_dim))}};
    split_scratch scratch;
    const split_room room = split_room_of(d, h);
    const on_device parts(d, std::vector<float>(room.floats));
    const on_device arrived(d, std::vector<unsigned>(room.counters));
    scratch.parts = parts.get();
    scratch.arrived = arrived.get();
    if (single) {
      view.decodes = static_cast<std::uint32_t>(lone.size());
      rotary_args t{};
      t.cos = cos.get();
      t.sin = sin.get();
      // Twice, since a run must leave its counters as they were.
      for (int i = 0; i < 2; ++i) decode_attention(d, view, a, t, fresh, scratch);
    } else {
      view.block_count = static_cast<std::uint32_t>(blocks.size());
      prefill_attention(d, view, a);
    }
    d.sync();
    REQUIRE(d.fault == "");
    if (fresh) {  // the kernel put them into their pages
      keys = k.back();
      values = v.back();
    }
    return worst(out.back(), r);
  }

 private:
  void take_out_fresh() {
    for (const decode_row& l : lone)
      for (std::uint32_t head = 0; head < h.kv_heads; ++head)
        for (int i = 0; i < static_cast<int>(h.head_dim); ++i) {
          const auto page = static_cast<std::size_t>(
              pages[static_cast<std::size_t>(l.pages_at + l.position / page_rows)]);
          const int units = static_cast<int>(h.head_dim) / 8;
          const int place = unit_at(i / 8, l.position % page_rows, units, page_rows) * 8 + i % 8;
          const std::size_t there =
              (page * h.kv_heads + head) * page_rows * h.head_dim + static_cast<std::size_t>(place);
          const std::size_t from = static_cast<std::size_t>(l.row) * h.width() +
                                   (h.heads + head) * h.head_dim + static_cast<std::size_t>(i);
          expected_.push_back({there, qkv[from], qkv[from + h.kv_heads * h.head_dim]});
          keys[there] = values[there] = tests::rounded(type, 100);
        }
  }

  double worst(const elements& got, tests::rng& r) const {
    double worst = 0, largest = 0;
    const auto rows = static_cast<std::uint32_t>(row_slice.size());
    const std::uint32_t step = pick(r, 1, 1 + rows / 4), heads = pick(r, 1, 1 + h.heads / 5);
    for (std::uint32_t row = 0; row < rows; row = row + 1 < rows ? std::min(row + step, rows - 1) : rows)
      for (std::uint32_t head = row % heads; head < h.heads; head += heads) {
        const auto w = wanted(row, head);
        for (std::uint32_t i = 0; i < h.head_dim; ++i) {
          const double d =
              std::abs(w[i] - tests::number(type, got[(std::size_t{row} * h.heads + head) * h.head_dim + i]));
          worst = d <= 1e30 ? std::max(worst, d) : 1e30;
          largest = std::max(largest, std::abs(w[i]));
        }
      }
    for (const auto& e : expected_)
      if (keys[e.place].bits != e.key.bits || values[e.place].bits != e.value.bits) return 1e30;
    return worst / largest;
  }

  struct expected {
    std::size_t place;
    element key, value;
  };
  std::vector<expected> expected_;
};

head_shape random_heads(tests::rng& r, std::uint32_t head_dim, std::uint32_t most_groups) {
  const std::uint32_t kv_heads = pick(r, 1, 3), groups[] = {1, 2, 3, 4, 7, 8, 16};
  std::uint32_t group = groups[pick(r, 0, 6)];
  while (group > most_groups) group = groups[pick(r, 0, 6)];
  return {kv_heads * group, kv_heads, head_dim};
}

constexpr dtype types[] = {dtype::bf16, dtype::f16};

// The error that rounding allows: of weights to elements, two or three of them in a sum, and of the result.
double rounding(dtype type) { return type == dtype::bf16 ? 8e-3 : 1e-3; }

}  // namespace

TEST_CASE(
    "cuda: attention of prompts equals a loop in double, wherever a slice begins and whatever it sees") {
  for (const bool deterministic : {false, true}) {
    device* d = tests::the_device(deterministic);
    if (!d) return;
    tests::rng r(21);
    for (int round = 0; round < 40; ++round) {
      const std::uint32_t widths[] = {64, 128, 64, 128, 64, 128, 32, 96, 16, 256};
      const dtype type = types[round / 10 % 2];
      const head_shape h = random_heads(r, widths[round % 10], 16);
      const std::uint32_t window = pick(r, 0, 2) == 0 ? pick(r, 1, 900) : 0;
      std::vector<slice> slices;
      for (std::uint32_t i = pick(r, 1, 3); i > 0; --i)
        slices.push_back({static_cast<int>(pick(r, 0, 2) ? pick(r, 0, 3000) : 0),
                          static_cast<int>(pick(r, 1, pick(r, 0, 1) ? 20 : 300))});
      scene s(r, type, h, window, slices, 128);
      CAPTURE(deterministic, name(type), h.head_dim, h.heads, h.kv_heads, window, slices.size(),
              slices[0].position, slices[0].rows);
      CHECK(s.difference(*d, r, 128, false) <= rounding(type));
    }
  }
}

TEST_CASE("cuda: a few rows behind thousands of tokens, which blocks share, equal a loop in double") {
  device* d = tests::the_device();
  if (!d) return;
  tests::rng r(22);
  int count = 0;
  for (const std::uint32_t head_dim : {64u, 128u})
    for (const int position : {500, 1023, 2048, 4000, 8100})
      for (const int rows : {2, 33, 128}) {
        const head_shape h = random_heads(r, head_dim, 8);
        const dtype type = types[++count % 2];
        scene s(r, type, h, 0, {{position, rows}}, 128);
        CAPTURE(name(type), head_dim, position, rows, h.heads, h.kv_heads);
        CHECK(s.difference(*d, r, 128, false) <= rounding(type));
      }
}

TEST_CASE(
    "cuda: attention of single rows equals a loop in double, with their key and value in the page or on the "
    "way") {
  device* d = tests::the_device();
  if (!d) return;
  tests::rng r(23);
  for (int round = 0; round < 120; ++round) {
    const std::uint32_t widths[] = {64, 128, 32, 96, 16, 256};
    const dtype type = types[round / 6 % 2];
    const head_shape h = random_heads(r, widths[round % 6], 16);
    const std::uint32_t window = pick(r, 0, 2) == 0 ? pick(r, 1, 900) : 0;
    std::vector<slice> slices;
    for (std::uint32_t i = pick(r, 0, 1) ? pick(r, 1, 4) : pick(r, 5, 60); i > 0; --i)
      slices.push_back({static_cast<int>(pick(r, 0, pick(r, 0, 2) ? 700 : 6000)), 1});
    scene s(r, type, h, window, slices, 0);
    const bool fresh = pick(r, 0, 1) == 1, listed = pick(r, 0, 1) == 1 && d->path == code_path::hopper;
    CAPTURE(name(type), h.head_dim, h.heads, h.kv_heads, window, slices.size(), slices[0].position, fresh,
            listed);
    CHECK(s.difference(*d, r, 128, fresh, listed) <= rounding(type));
  }
}

}  // namespace weir::tests::cuda_attention_test

#endif
