// The cuda backend's attention over its pages, alone: prompts in blocks and single rows, against a loop in
// double. Contexts are long enough that blocks share them. Skipped, saying so, where there is no device.
#ifdef WEIR_WITH_CUDA
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <span>

#include "kernels/cuda/layers.h"
#include "kernels/cuda/pages/head_order.h"
#include "kernels/reference/kv_values.h"
#include "kernels/tensor.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/random_data.h"
#include "tests/kernels/stored_numbers.h"

namespace weir::tests::cuda_attention_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

namespace {

struct slice {
  int position, rows;
};

using elements = std::vector<element>;
using page_bytes = std::vector<unsigned char>;

constexpr int page_rows = cuda::page_tokens;

elements random_elements(tests::rng& r, dtype type, std::size_t count) {
  elements v(count);
  std::normal_distribution<float> normal;
  for (auto& x : v) x = tests::rounded(type, normal(r));
  return v;
}

// Numbers as pages store them, of `heads` heads of pages: rounded ones around 0, or codes and scales.
page_bytes random_numbers(tests::rng& r, const head_shape& h, std::size_t heads) {
  const std::size_t numbers = page_rows * h.head_dim, bytes = h.page_bytes();
  page_bytes v(heads * bytes);
  std::normal_distribution<float> normal;
  for (std::size_t head = 0; head < heads; ++head) {
    unsigned char* at = &v[head * bytes];
    for (std::size_t i = 0; i < numbers; ++i) {
      const float x = normal(r);
      const element e = tests::rounded(h.pages == page_type::f16 ? dtype::f16 : dtype::bf16, x);
      if (h.pages == page_type::fp8) at[i] = to_e4m3(x);
      if (h.pages == page_type::q8)
        at[i] = static_cast<unsigned char>(static_cast<signed char>(std::clamp(x * 45, -127.0f, 127.0f)));
      if (number_bytes(h.pages) == 2) std::memcpy(at + 2 * i, &e, 2);
    }
    for (std::size_t i = numbers * static_cast<std::size_t>(number_bytes(h.pages)); i < bytes; i += 2) {
      const std::uint16_t scale = to_f16(0.01f + 0.02f * std::abs(normal(r)));
      std::memcpy(at + i, &scale, 2);
    }
  }
  return v;
}

// What store_kv() makes of a row [head_dim]: its numbers, then its scales.
page_bytes reference_bytes(bool q8, const std::vector<float>& x) {
  const auto width = static_cast<std::uint32_t>(x.size());
  const kv_type type = q8 ? kv_type::q8 : kv_type::fp8;
  page_bytes bytes(kv_row_bytes(type, width));
  store_kv({reinterpret_cast<std::byte*>(bytes.data()), type, width, 1}, 0, x.data());
  return bytes;
}

// Multiplies each group of q8 by the Hadamard matrix, which is its own inverse.
void turn_groups(std::span<double> row) {
  for (std::size_t bit = 1; bit < q8_group; bit *= 2)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i & bit) continue;
      const double a = row[i], b = row[i + bit];
      row[i] = (a + b) / std::sqrt(2.0);
      row[i + bit] = (a - b) / std::sqrt(2.0);
    }
}

// Slices of sequences whose keys and values lie in pages in any order. Where `lines` is 0, every slice is one
// row, for decode_attention; else the slices are for prefill_attention, in blocks of `lines` lines.
struct scene {
  dtype type;
  head_shape h;
  attention_rule rule;
  std::uint32_t rest = 0;    // rotary_args::rest, of fresh rows
  std::vector<float> sinks;  // of every head; empty: there are none
  std::vector<slice> slices;
  bool single;
  page_bytes keys, values;  // by page, as on the device
  elements qkv;
  std::vector<std::int32_t> pages, pages_at, row_slice, row_position;
  std::vector<prefill_block> blocks;
  std::vector<decode_row> lone;
  std::uint32_t context = 0;

  scene(tests::rng& r, dtype t, head_shape shape, std::uint32_t window, std::vector<slice> s,
        std::uint32_t lines)
      : type(t),
        h(shape),
        rule{window, 1.0f / std::sqrt(static_cast<float>(shape.head_dim))},
        slices(std::move(s)) {
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
    keys = random_numbers(r, h, std::size_t(count) * h.kv_heads);
    values = random_numbers(r, h, std::size_t(count) * h.kv_heads);
    qkv = random_elements(r, type, static_cast<std::size_t>(row) * h.width());
  }

  // The byte of keys, or of values, where a token's number is.
  std::size_t place_of(std::int32_t first, int token, std::uint32_t head, int i) const {
    const auto page = static_cast<std::size_t>(pages[static_cast<std::size_t>(first + token / page_rows)]);
    const int units = row_units(h.pages, static_cast<int>(h.head_dim)), at = i * number_bytes(h.pages);
    const int place = unit_at(at / 16, token % page_rows, units, page_rows) * 16 + at % 16;
    return (page * h.kv_heads + head) * h.page_bytes() + static_cast<std::size_t>(place);
  }
  // The byte of a token's first scale. The scales of its other groups follow at distances of a page's tokens.
  std::size_t scale_of(std::int32_t first, int token, std::uint32_t head) const {
    const auto page = static_cast<std::size_t>(pages[static_cast<std::size_t>(first + token / page_rows)]);
    return (page * h.kv_heads + head) * h.page_bytes() + page_rows * h.head_dim +
           static_cast<std::size_t>(token % page_rows) * 2;
  }

  // What is stored as a token's row of one head, turned back: [head_dim].
  std::vector<double> stored(const page_bytes& in, std::int32_t first, int token, std::uint32_t head) const {
    std::vector<double> row(h.head_dim);
    for (int i = 0; i < static_cast<int>(h.head_dim); ++i) {
      const unsigned char* at = &in[place_of(first, token, head, i)];
      element e{};
      double& x = row[static_cast<std::size_t>(i)];
      if (h.pages == page_type::fp8) {
        x = tests::e4m3_value(*at);
      } else if (h.pages == page_type::q8) {
        const auto group = static_cast<std::size_t>(i / q8_group);
        std::memcpy(&e, &in[scale_of(first, token, head) + group * page_rows * 2], 2);
        x = static_cast<signed char>(*at) * double{from_f16(e.bits)};
      } else {
        std::memcpy(&e, at, 2);
        x = tests::number(type, e);
      }
    }
    if (h.pages == page_type::q8) turn_groups(row);
    return row;
  }
  // The element of a fresh query or key that the kernel has as number i.
  std::size_t place_in_head(std::size_t i) const {
    const int half = static_cast<int>(h.head_dim / 2);
    return static_cast<std::size_t>(number_at(static_cast<int>(i), half, half - static_cast<int>(rest)));
  }
  // A row's queries of one head, [head_dim]. Beside q8 they are in qkv as rotary_and_write() leaves them,
  // turned, unless decode_attention() turns them itself.
  std::vector<double> query_of(std::size_t row, std::uint32_t head, bool fresh) const {
    std::vector<double> q;
    for (std::size_t i = 0; i < h.head_dim; ++i)
      q.push_back(
          tests::number(type, qkv[row * h.width() + head * h.head_dim + (fresh ? place_in_head(i) : i)]));
    if (h.pages == page_type::q8 && !fresh) turn_groups(q);
    return q;
  }

  // What is stored for a sequence and key head, whose pages begin at `first`, up to position `to`.
  struct history {
    std::vector<double> keys, values;  // [tokens, head_dim]
    const double* key(const head_shape& h, std::int32_t t) const {
      return &keys[static_cast<std::size_t>(t) * h.head_dim];
    }
    const double* value(const head_shape& h, std::int32_t t) const {
      return &values[static_cast<std::size_t>(t) * h.head_dim];
    }
  };
  const history& history_of(std::int32_t first, std::int32_t to, std::uint32_t kv_head) const {
    history& all = histories_[{first, kv_head}];
    for (auto t = static_cast<std::int32_t>(all.keys.size() / h.head_dim); t <= to; ++t) {
      const auto key = stored(keys, first, t, kv_head), value = stored(values, first, t, kv_head);
      all.keys.insert(all.keys.end(), key.begin(), key.end());
      all.values.insert(all.values.end(), value.begin(), value.end());
    }
    return all;
  }

  // The attention of one row and head, by the definition: [head_dim].
  std::vector<double> wanted(std::size_t row, std::uint32_t head, bool fresh) const {
    const std::int32_t first = pages_at[static_cast<std::size_t>(row_slice[row])], to = row_position[row];
    const std::int32_t from = rule.first_seen(to);
    const double scale = fresh ? rule.scale_at(static_cast<std::uint32_t>(to)) : rule.scale, cap = rule.cap;
    const std::uint32_t kv_head = head / (h.heads / h.kv_heads);
    const std::vector<double> query = query_of(row, head, fresh);
    std::vector<double> weights, out(h.head_dim);
    double largest = -1e300, total = 0;
    const history& all = history_of(first, to, kv_head);
    for (std::int32_t t = from; t <= to; ++t) {
      const double sum = std::inner_product(query.begin(), query.end(), all.key(h, t), 0.0);
      weights.push_back(cap == 0 ? sum * scale : cap * std::tanh(sum * scale / cap));
      largest = std::max(largest, weights.back());
    }
    if (!sinks.empty()) largest = std::max(largest, double{sinks[head]});
    for (double& x : weights) total += x = std::exp(x - largest);
    if (!sinks.empty()) total += std::exp(sinks[head] - largest);
    for (std::int32_t t = from; t <= to; ++t) {
      const double* value = all.value(h, t);
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] += weights[static_cast<std::size_t>(t - from)] / total * value[i];
    }
    return out;
  }

  // The largest difference over some rows, in units of the largest value, with outputs in either order.
  // `fresh`: each row's own key and value lie in qkv alone, and the kernel stores them. `listed`: the rows
  // are those of list_decodes().
  double difference(device& d, tests::rng& r, std::uint32_t lines, bool fresh, bool listed = false) {
    const std::size_t rows = row_slice.size();
    order_ = pick(r, 0, 1) == 0 ? column_order::plain : column_order::paired;
    if (fresh) take_out_fresh();
    const on_device k(d, keys), v(d, values);
    const on_device q(d, qkv);
    const on_device out(d, elements(rows * h.heads * h.head_dim, element{0x7fc0}));
    const on_device page_list(d, pages);
    const on_device block_list(d, blocks);
    const on_device sink_list(d, sinks);
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
    attention_args a{h, type, {k.get(), v.get()}, q.get(), out.get(), rule, order_};
    if (!sinks.empty()) a.sinks = sink_list.get();
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
      t.rest = rest;
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
    return worst(out.back(), r, fresh);
  }

 private:
  void take_out_fresh() {
    for (const decode_row& l : lone)
      for (std::uint32_t head = 0; head < h.kv_heads; ++head) {
        const element* key =
            &qkv[static_cast<std::size_t>(l.row) * h.width() + (h.heads + head) * h.head_dim];
        const page_bytes of_key = bytes_of(key, true),
                         of_value = bytes_of(key + h.kv_heads * h.head_dim, false);
        std::size_t taken = 0;
        const auto take = [&](std::size_t at) {
          expected_.push_back({at, of_key[taken], of_value[taken]});
          keys[at] = values[at] = 0x45;
          ++taken;
        };
        for (int i = 0; i < static_cast<int>(h.head_dim); ++i)
          for (int byte = 0; byte < number_bytes(h.pages); ++byte)
            take(place_of(l.pages_at, l.position, head, i) + static_cast<std::size_t>(byte));
        for (std::size_t scale = 0; taken < of_key.size(); ++scale)
          for (std::size_t byte = 0; byte < 2; ++byte)
            take(scale_of(l.pages_at, l.position, head) + scale * page_rows * 2 + byte);
      }
  }

  // What a row's key or value is stored as: its numbers, then its scales.
  page_bytes bytes_of(const element* row, bool key) const {
    page_bytes bytes;
    std::vector<float> x;
    const auto at = [&](std::size_t i) { return row[key ? place_in_head(i) : i]; };
    for (std::size_t i = 0; i < h.head_dim; ++i) x.push_back(tests::number(type, at(i)));
    if (number_bytes(h.pages) == 1) return reference_bytes(h.pages == page_type::q8, x);
    for (std::size_t i = 0; i < h.head_dim; ++i) {
      bytes.push_back(static_cast<unsigned char>(at(i).bits & 0xff));
      bytes.push_back(static_cast<unsigned char>(at(i).bits >> 8));
    }
    return bytes;
  }

  double worst(const elements& got, tests::rng& r, bool fresh) const {
    double worst = 0, largest = 0;
    const auto rows = static_cast<std::uint32_t>(row_slice.size());
    const std::uint32_t step = pick(r, 1, 1 + rows / 4), heads = pick(r, 1, 1 + h.heads / 5);
    for (std::uint32_t row = 0; row < rows; row = row + 1 < rows ? std::min(row + step, rows - 1) : rows)
      for (std::uint32_t head = row % heads; head < h.heads; head += heads) {
        const auto w = wanted(row, head, fresh);
        for (std::uint32_t i = 0; i < h.head_dim; ++i) {
          const std::size_t at = (std::size_t{row} * h.heads + head) * h.head_dim + place_in(order_, i);
          const double d = std::abs(w[i] - tests::number(type, got[at]));
          worst = d <= 1e30 ? std::max(worst, d) : 1e30;
          largest = std::max(largest, std::abs(w[i]));
        }
      }
    for (const auto& e : expected_)
      if (keys[e.place] != e.key || values[e.place] != e.value) return 1e30;
    return worst / largest;
  }

  struct expected {
    std::size_t place;
    unsigned char key, value;
  };
  std::vector<expected> expected_;
  mutable std::map<std::pair<std::int32_t, std::uint32_t>, history> histories_;
  column_order order_ = column_order::plain;
};

head_shape random_heads(tests::rng& r, std::uint32_t head_dim, std::uint32_t most_groups, page_type pages) {
  if (pages == page_type::q8) head_dim = std::max<std::uint32_t>(head_dim, q8_group);
  const std::uint32_t kv_heads = pick(r, 1, 3), groups[] = {1, 2, 3, 4, 7, 8, 16};
  std::uint32_t group = groups[pick(r, 0, 6)];
  while (group > most_groups) group = groups[pick(r, 0, 6)];
  return {kv_heads * group, kv_heads, head_dim, pages, 8 * pick(r, 0, 3)};
}

// A rule may bound scores, and let them grow. Heads may have sinks, from those that take next to nothing to
// those that take nearly all.
void vary(tests::rng& r, scene& s) {
  if (pick(r, 0, 2) == 0) s.rule.cap = 2;
  if (pick(r, 0, 3) == 0) s.rule.growth = 0.2f, s.rule.growth_unit = pick(r, 1, 200);
  if (pick(r, 0, 1) == 0) s.sinks = random_floats(r, s.h.heads, 4);
}

// How many numbers and scales of token `token` of a head in a page are not what store_kv() makes of `x`. Any
// NaN is as good as another.
int differing(const head_shape& h, const unsigned char* in, int token, const std::vector<float>& x) {
  const page_bytes wanted = reference_bytes(h.pages == page_type::q8, x);
  int wrong = 0;
  for (int i = 0; i < static_cast<int>(h.head_dim); ++i) {
    const int units = row_units(h.pages, static_cast<int>(h.head_dim));
    const unsigned char is = in[unit_at(i / 16, token, units, page_rows) * 16 + i % 16];
    const auto at = static_cast<std::size_t>(i);
    const bool nan = h.pages == page_type::fp8 && std::isnan(x[at]) && (is & 0x7f) == 0x7f;
    wrong += is != wanted[at] && !nan;
  }
  for (std::size_t i = h.head_dim; i < wanted.size(); i += 2) {
    std::uint16_t is, want;
    std::memcpy(&is, in + page_rows * i + static_cast<std::size_t>(token) * 2, 2);
    std::memcpy(&want, &wanted[i], 2);
    wrong += is != want && !((is & 0x7fff) > 0x7c00 && (want & 0x7fff) > 0x7c00);
  }
  return wrong;
}

// Types of rows, and of the pages beside them.
struct numbers {
  dtype rows;
  page_type pages;
};
constexpr numbers types[] = {{dtype::bf16, page_type::bf16}, {dtype::f16, page_type::f16},
                             {dtype::bf16, page_type::fp8},  {dtype::f16, page_type::fp8},
                             {dtype::bf16, page_type::q8},   {dtype::f16, page_type::q8}};

// The error that rounding allows, in units of the largest value: half a unit of the last place for each
// rounding. Weights of tokens and the result are rounded to elements. With q8 the products of weights and
// scales are rounded to f16 as well, and so are queries where the kernel turns them (`fresh`).
double rounding(dtype type, page_type pages, bool fresh = false) {
  const int more = pages != page_type::q8 ? 0 : fresh ? 2 : 1;
  return 2 * (type == dtype::bf16 ? 4e-3 : 5e-4) + more * 5e-4;
}

}  // namespace

TEST_CASE(
    "cuda: attention of prompts equals a loop in double, wherever a slice begins and whatever it sees") {
  for (const bool deterministic : {false, true}) {
    device* d = tests::the_device(deterministic);
    if (!d) return;
    tests::rng r(21);
    for (int round = 0; round < 72; ++round) {
      const std::uint32_t widths[] = {64, 128, 64, 128, 256, 128, 32, 96, 16, 256, 256, 64};
      const auto [type, pages] = types[round / 12 % 6];
      const head_shape h = random_heads(r, widths[round % 12], 16, pages);
      const std::uint32_t window = pick(r, 0, 2) == 0 ? pick(r, 1, 900) : 0;
      std::vector<slice> slices;
      for (std::uint32_t i = pick(r, 1, 3); i > 0; --i)
        slices.push_back({static_cast<int>(pick(r, 0, 2) ? pick(r, 0, h.head_dim > 128 ? 800 : 3000) : 0),
                          static_cast<int>(pick(r, 1, pick(r, 0, 1) ? 20 : 300))});
      scene s(r, type, h, window, slices, 128);
      vary(r, s);
      CAPTURE(deterministic, name(type), pages, h.head_dim, h.heads, h.kv_heads, window, s.rule.cap,
              slices.size(), slices[0].position, slices[0].rows);
      CHECK(s.difference(*d, r, 128, false) <= rounding(type, pages));
    }
  }
}

TEST_CASE("cuda: a few rows behind thousands of tokens, which blocks share, equal a loop in double") {
  device* d = tests::the_device();
  if (!d) return;
  tests::rng r(22);
  int count = 0;
  for (const std::uint32_t head_dim : {64u, 128u, 256u})
    for (const int position : {500, 1023, 2048, 4000, 8100})
      for (const int rows : {2, 33, 128}) {
        if (head_dim > 128 && rows * position > 70000) continue;  // the loop in double takes long
        const auto [type, pages] = types[++count % 6];
        const head_shape h = random_heads(r, head_dim, 8, pages);
        scene s(r, type, h, 0, {{position, rows}}, 128);
        vary(r, s);
        CAPTURE(name(type), pages, head_dim, position, rows, h.heads, h.kv_heads);
        CHECK(s.difference(*d, r, 128, false) <= rounding(type, pages));
      }
}

TEST_CASE(
    "cuda: attention of single rows equals a loop in double, with their key and value in the page or on the "
    "way") {
  device* d = tests::the_device();
  if (!d) return;
  tests::rng r(23);
  for (int round = 0; round < 144; ++round) {
    const std::uint32_t widths[] = {64, 128, 32, 96, 16, 256};
    const auto [type, pages] = types[round / 6 % 6];
    const head_shape h = random_heads(r, widths[round % 6], 16, pages);
    const std::uint32_t window = pick(r, 0, 2) == 0 ? pick(r, 1, 900) : 0;
    std::vector<slice> slices;
    for (std::uint32_t i = pick(r, 0, 1) ? pick(r, 1, 4) : pick(r, 5, 60); i > 0; --i)
      slices.push_back({static_cast<int>(pick(r, 0,
                                              pick(r, 0, 2)      ? 700
                                              : h.head_dim > 128 ? 2000
                                                                 : 5000)),
                        1});
    scene s(r, type, h, window, slices, 0);
    vary(r, s);
    if (pick(r, 0, 2) == 0) s.rest = 2 * pick(r, 0, h.head_dim / 4 - 1);
    const bool fresh = takes_fresh(h) && pick(r, 0, 1) == 1,
               listed = pick(r, 0, 1) == 1 && d->path == code_path::hopper;
    CAPTURE(name(type), pages, h.head_dim, h.heads, h.kv_heads, window, slices.size(), slices[0].position,
            fresh, listed, s.rule.cap, s.rule.growth, s.rest);
    CHECK(s.difference(*d, r, 128, fresh, listed) <= rounding(type, pages, fresh));
  }
}

TEST_CASE("cuda: what is written into pages of fp8 and q8 has the bits of the reference, for any f32") {
  device* d = tests::the_device();
  if (!d) return;
  tests::rng r(24);
  for (const auto& [type, stores] : types)
    for (const std::uint32_t head_dim : {16u, 32u, 64u, 96u, 128u, 256u}) {
      const bool q8 = stores == page_type::q8;
      if (number_bytes(stores) == 2 || (q8 && head_dim < q8_group)) continue;
      const head_shape h{5, 2, head_dim, stores};
      const std::uint32_t rows = 70, pages = 2;
      // The f32 numbers come by the bias, beside rows of zeros. An angle of 0 turns no number, but a key that
      // is not finite would reach the number that it is turned with. A group of q8 has numbers of similar
      // size, so that codes are not all 0, and few that are not finite.
      std::vector<float> bias(h.width());
      for (std::uint32_t i = 0; i < h.width(); ++i) {
        const auto bits = static_cast<std::uint32_t>(r());
        const int exponent = q8 ? static_cast<int>(i / 64 % 29) - 20 : -12;
        bias[i] = std::ldexp(std::bit_cast<float>((bits & 0x807fffff) | 0x3f800000),
                             static_cast<int>(pick(r, 0, q8 ? 3 : 22)) + exponent);
        if (!q8 && pick(r, 0, 1)) bias[i] = std::bit_cast<float>(bits);
        if (pick(r, 0, 1)) bias[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(bias[i]) & 0xfff80000);
        const bool of_value = i >= (h.heads + h.kv_heads) * head_dim;
        if (q8 && of_value && pick(r, 0, 99) == 0) bias[i] = pick(r, 0, 1) ? NAN : -INFINITY;
        if (bias[i] == 0 || (!std::isfinite(bias[i]) && !of_value)) bias[i] = 500;
      }
      const on_device b(*d, bias), cos(*d, std::vector<float>(rows * head_dim / 2, 1.0f)),
          sin(*d, std::vector<float>(rows * head_dim / 2, 0));
      const on_device qkv(*d, elements(rows * h.width()));
      const on_device k(*d, page_bytes(pages * h.kv_heads * h.page_bytes(), 0x45)),
          v(*d, page_bytes(pages * h.kv_heads * h.page_bytes(), 0x45));
      std::vector<std::uint32_t> positions(rows);
      std::iota(positions.begin(), positions.end(), 0);
      const on_device at(*d, positions);
      const on_device pages_at(*d, std::vector<std::int32_t>(rows, 0)),
          numbers(*d, std::vector<std::int32_t>{1, 0});
      rows_view view{};
      view.positions = at.get();
      view.pages_at = pages_at.get();
      view.pages = numbers.get();
      view.rows = rows;
      rotary_args t{};
      t.bias = b.get();
      t.cos = cos.get();
      t.sin = sin.get();
      rotary_and_write(*d, type, view, h, t, qkv.get(), {k.get(), v.get()});
      const page_bytes keys = k.back(), values = v.back();
      const elements queries = qkv.back();
      REQUIRE(d->fault == "");
      int wrong = 0;
      for (std::uint32_t row = 0; row < rows; ++row)
        for (std::uint32_t head = 0; head < h.kv_heads; ++head) {
          const std::size_t page = row < 64 ? 1 : 0, of = (page * h.kv_heads + head) * h.page_bytes();
          const float *key = &bias[(h.heads + head) * head_dim], *value = key + h.kv_heads * head_dim;
          wrong += differing(h, &keys[of], static_cast<int>(row % 64), {key, key + head_dim});
          wrong += differing(h, &values[of], static_cast<int>(row % 64), {value, value + head_dim});
        }
      for (std::uint32_t row = 0; q8 && row < rows; ++row)
        for (std::uint32_t i = 0; i < h.heads * head_dim; i += q8_group) {
          double turned[q8_group];
          std::copy_n(&bias[i], q8_group, turned);
          turn_group(turned, q8_group);
          for (std::uint32_t j = 0; j < q8_group; ++j) {
            const float is = tests::number(type, queries[std::size_t{row} * h.width() + i + j]);
            wrong += std::abs(is - turned[j]) > 0x1p-8 * std::abs(turned[j]) + 0x1p-23;
          }
        }
      CAPTURE(head_dim, name(type), stores);
      CHECK(wrong == 0);
      CHECK(keys[page_rows * head_dim - 1] == 0x45);  // the last token of page 0, which no row has
    }
}

TEST_CASE("cuda: a NaN in a page of fp8 or q8 stays one") {
  device* d = tests::the_device();
  if (!d) return;
  tests::rng r(25);
  for (const page_type type : {page_type::fp8, page_type::q8})
    for (const std::uint32_t lines : {0u, 128u})
      for (const bool in_keys : {true, false}) {
        const head_shape h{4, 1, 64, type};
        scene s(r, dtype::bf16, h, 0, {{300, lines == 0 ? 1 : 40}}, lines);
        page_bytes& in = in_keys ? s.keys : s.values;
        if (type == page_type::fp8)
          in[s.place_of(0, 17, 0, 5)] = 0xff;
        else
          in[s.scale_of(0, 17, 0) + 1] = 0x7f;
        CAPTURE(type, lines, in_keys);
        CHECK(s.difference(*d, r, 128, false) > 1e20);
      }
}

}  // namespace weir::tests::cuda_attention_test

#endif
