// attention.h — softmax attention of many queries over some pages of one sequence, in one pass.
//
// Each page is read once. Its keys are widened to f32 and transposed, so that a vector holds one dimension of
// many tokens. Then all queries go over the page, a few at a time in registers: the scores of the page, their
// running maximum, the weights, and the weighted sum of values, which is rescaled as the maximum grows
// (Milakov and Gimelshein 2018, «Online normalizer calculation for softmax»).
//
// A query takes pages and positions in one order, and positions that it does not attend to are added as zero:
// its result is the same bits whatever queries share the tile.
#pragma once

#include "kernels/cpu/simd/kv_rows.h"
#include "kernels/cpu/simd/pointwise.h"
#include "kernels/cpu/simd/vector.h"

namespace weir::kernels {
namespace {

constexpr std::size_t most = 6;                    // queries in registers at once
constexpr std::size_t wide = lanes == 16 ? 4 : 2;  // vectors at once: most * wide sums in registers
constexpr std::size_t line_bytes = 64;                    // of a cache line
constexpr std::size_t line = line_bytes / sizeof(float);  // floats of a cache line
constexpr std::size_t ahead = 8;  // queries and outputs lie far apart: prefetched this many ahead

struct attention_room {
  float* q;       // [count, head_dim] scaled, and turned as the keys are
  float* keys;    // [head_dim, page_tokens] of the present page
  float* rows;    // [page_tokens, head_dim] of the present page: keys, later values, widened
  float* scales;  // [head_dim / kv_group, page_tokens] of the present page
  float* scores;  // [most, page_tokens] of the queries in registers; later their weights
  float* totals;  // [count, lanes] sums of weights so far
  // Whether pages are widened into this room before queries go over them. Otherwise the queries are few
  // enough for registers, and stored numbers are widened in registers, too.
  bool widens;
};

// One head's part of a page, as stored.
struct page_rows {
  const std::byte *keys, *values;            // [page_tokens, head_dim]
  const std::byte *next_keys, *next_values;  // of the next page; of this one where it is the last
};

// Positions [from, to), counted in a page.
struct part_of_page {
  std::uint32_t from, to;
  bool empty() const { return from >= to; }
};

// The positions of a page that `q` attends to. The page's first position is `begin`.
WEIR_INLINE part_of_page seen_by(const attention_query& q, std::uint32_t begin, std::uint32_t tokens) {
  const std::uint32_t from = q.from > begin ? q.from - begin : 0, to = q.to > begin ? q.to - begin : 0;
  return {from < tokens ? from : tokens, to < tokens ? to : tokens};
}

// The smallest part that covers both.
WEIR_INLINE part_of_page both(part_of_page a, part_of_page b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {a.from < b.from ? a.from : b.from, a.to > b.to ? a.to : b.to};
}

// Interleaves one half of the lanes of `a` with the same half of `b`: the lower half for 0, the upper for 1.
template <std::size_t half, std::size_t... i>
WEIR_INLINE vec mingled(vec a, vec b, std::index_sequence<i...>) {
  return __builtin_shufflevector(a, b, static_cast<int>(i / 2 + i % 2 * lanes + half * lanes / 2)...);
}

// Transposes `rows` by log2(lanes) perfect shuffles.
WEIR_INLINE void transpose(vec (&rows)[lanes]) {
  constexpr auto all_lanes = std::make_index_sequence<lanes>{};
  WEIR_UNROLL
  for (std::size_t step = 1; step < lanes; step *= 2) {
    vec next[lanes];
    WEIR_UNROLL
    for (std::size_t i = 0; i < lanes / 2; ++i) {
      next[2 * i] = mingled<0>(rows[i], rows[i + lanes / 2], all_lanes);
      next[2 * i + 1] = mingled<1>(rows[i], rows[i + lanes / 2], all_lanes);
    }
    WEIR_UNROLL
    for (std::size_t i = 0; i < lanes; ++i) rows[i] = next[i];
  }
}

// Transposes keys: to[i, p] = keys[p, i] for p in whole vectors that cover `seen`.
void turn_keys(const float* keys, std::size_t width, std::size_t tokens, part_of_page seen, float* to) {
  for (std::size_t p = seen.from / lanes * lanes; p < seen.to; p += lanes) {
    std::size_t i = 0;
    for (; i + lanes <= width; i += lanes) {
      vec rows[lanes];
      WEIR_UNROLL
      for (std::size_t r = 0; r < lanes; ++r) rows[r] = load_f32(keys + (p + r) * width + i);
      transpose(rows);
      WEIR_UNROLL
      for (std::size_t r = 0; r < lanes; ++r) store_as(to + (i + r) * tokens + p, rows[r]);
    }
    for (; i < width; ++i)
      for (std::size_t r = 0; r < lanes; ++r) to[i * tokens + p + r] = keys[(p + r) * width + i];
  }
}

// Computes the scores of `queries` queries at positions [at, at + vectors * lanes).
template <std::size_t queries, std::size_t vectors>
WEIR_INLINE void score_block(const attention_room& room, std::size_t width, std::size_t tokens,
                             std::size_t first, std::size_t at) {
  const float* q = room.q + first * width;
  vec sums[queries][vectors] = {};
  for (std::size_t i = 0; i < width; ++i) {
    vec k[vectors];
    WEIR_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) k[v] = load_f32(room.keys + i * tokens + at + v * lanes);
    WEIR_UNROLL
    for (std::size_t j = 0; j < queries; ++j)
      WEIR_UNROLL
      for (std::size_t v = 0; v < vectors; ++v) sums[j][v] += k[v] * q[j * width + i];
  }
  WEIR_UNROLL
  for (std::size_t j = 0; j < queries; ++j)
    WEIR_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) store_as(room.scores + j * tokens + at + v * lanes, sums[j][v]);
}

// Computes the scores from keys as they are stored; they are widened and transposed in registers. This is for
// tiles whose queries all fit in registers, since no other queries need the transposed keys. The next keys
// and the values of these tokens are prefetched, in the order in which they lie in memory.
template <std::size_t queries, kv_type type>
void score_rows(const attention_room& room, const page_rows& page, std::size_t width, std::size_t tokens,
                part_of_page block) {
  constexpr std::size_t size = facts(type).bytes, square = lanes * lanes * size;
  for (std::size_t p = block.from; p < block.to; p += lanes) {
    const std::byte* keys = page.keys + p * width * size;
    const std::byte* coming = p + lanes < block.to ? keys + lanes * width * size : page.next_keys;
    const std::byte* values = page.values + p * width * size;
    vec sums[queries] = {};
    std::size_t i = 0;
    for (; i + lanes <= width; i += lanes) {
      vec rows[lanes];
      WEIR_UNROLL
      for (std::size_t r = 0; r < lanes; ++r) rows[r] = load_stored<type>(keys + (r * width + i) * size);
      WEIR_UNROLL
      for (std::size_t r = 0; r < square; r += line_bytes) {
        __builtin_prefetch(coming + i * lanes * size + r);
        __builtin_prefetch(values + i * lanes * size + r);
      }
      transpose(rows);
      if constexpr (type == kv_type::q8) {
        const vec scale = load_f16(scales_of(page.keys, width, tokens) + i / most_kv_group * tokens + p);
        WEIR_UNROLL
        for (std::size_t r = 0; r < lanes; ++r) rows[r] *= scale;
      }
      WEIR_UNROLL
      for (std::size_t r = 0; r < lanes; ++r)
        WEIR_UNROLL
        for (std::size_t j = 0; j < queries; ++j) sums[j] += rows[r] * room.q[j * width + i + r];
    }
    if constexpr (type == kv_type::f32)
      for (; i < width; ++i) {
        vec column;
        for (std::size_t r = 0; r < lanes; ++r) column[r] = load_as<float>(keys + (r * width + i) * size);
        for (std::size_t j = 0; j < queries; ++j) sums[j] += column * room.q[j * width + i];
      }
    for (std::size_t j = 0; j < queries; ++j) store_as(room.scores + j * tokens + p, sums[j]);
  }
}

// sums = sums * shrink + weights · values over positions `seen`, for `vectors` vectors of dimensions from
// `at` on. With `rest` it is for `rest` < lanes dimensions from `at` on: the last ones of the head. Every
// dimension goes through the same vector operations.
template <std::size_t queries, std::size_t vectors, kv_type type>
WEIR_INLINE void gather_block(const attention_room& room, const std::byte* values, std::size_t width,
                              std::size_t tokens, part_of_page seen, const float* shrink, float* to,
                              std::size_t at, std::size_t rest = 0) {
  const auto load = [&](const float* from) __attribute__((always_inline)) {
    return vectors == 1 && rest != 0 ? load_part<dtype::f32>(from, 0, rest) : load_f32(from);
  };
  const auto value = [&](std::size_t p, std::size_t i) __attribute__((always_inline)) {
    const std::byte* from = values + (p * width + i) * facts(type).bytes;
    if constexpr (type == kv_type::f32) return load(reinterpret_cast<const float*>(from));
    if constexpr (type == kv_type::q8)
      return load_stored<type>(from) * broadcast(room.scales[i / most_kv_group * tokens + p]);
    return load_stored<type>(from);
  };
  vec sums[queries][vectors];
  WEIR_UNROLL
  for (std::size_t j = 0; j < queries; ++j)
    WEIR_UNROLL
    for (std::size_t v = 0; v < vectors; ++v)
      sums[j][v] = rounded(load(to + j * width + at + v * lanes) * shrink[j]);
  for (std::size_t p = seen.from; p < seen.to; ++p) {
    vec x[vectors];
    WEIR_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) x[v] = value(p, at + v * lanes);
    WEIR_UNROLL
    for (std::size_t j = 0; j < queries; ++j)
      WEIR_UNROLL
      for (std::size_t v = 0; v < vectors; ++v) sums[j][v] += x[v] * room.scores[j * tokens + p];
  }
  WEIR_UNROLL
  for (std::size_t j = 0; j < queries; ++j)
    WEIR_UNROLL
    for (std::size_t v = 0; v < vectors; ++v)
      std::memcpy(to + j * width + at + v * lanes, &sums[j][v], (rest != 0 ? rest : lanes) * sizeof(float));
}

// Calls f.operator()<n>(at) for blocks of n <= wide vectors that cover [at, end), except for a rest of less
// than one vector.
template <class F>
WEIR_INLINE void in_blocks(std::size_t at, std::size_t end, const F& f) {
  for (; at + wide * lanes <= end; at += wide * lanes) f.template operator()<wide>(at);
  if constexpr (wide == 4) {
    if (at + 3 * lanes <= end) return f.template operator()<3>(at);
    if (at + 2 * lanes <= end) return f.template operator()<2>(at);
  }
  if (at + lanes <= end) f.template operator()<1>(at);
}

// The largest of `so_far` and a query's scores in `block`, which is whole vectors. With `masked` the scores
// outside `seen` become -inf.
template <bool masked>
WEIR_INLINE float largest_in(float* scores, part_of_page seen, part_of_page block, float so_far) {
  vec in_lane = all(so_far);
  for (std::size_t p = block.from; p < block.to; p += lanes) {
    vec x = load_f32(scores + p);
    if constexpr (masked) {
      const ivec at = lane_numbers() + static_cast<std::int32_t>(p);
      const ivec inside =
          (at >= static_cast<std::int32_t>(seen.from)) & (at < static_cast<std::int32_t>(seen.to));
      x = inside != 0 ? x : all(-__builtin_inff());
      store_as(scores + p, x);
    }
    in_lane = larger(in_lane, x);
  }
  return any_above(in_lane, so_far) ? largest_of(in_lane) : so_far;  // the maximum seldom grows
}

// Replaces scores by their weights, exp(score - largest). Sets totals to totals * shrink + the weights' sums
// by lane.
template <bool masked>
WEIR_INLINE void weigh(float* scores, part_of_page block, float largest, float shrink, float* totals) {
  vec total = rounded(load_f32(totals) * shrink);
  for (std::size_t p = block.from; p < block.to; p += lanes) {
    const vec x = load_f32(scores + p);
    vec weights = exp_below<0>(x - largest);
    if constexpr (masked) weights = x == all(-__builtin_inff()) ? vec{} : weights;
    store_as(scores + p, weights);
    total += weights;
  }
  store_as(totals, total);
}

// Replaces the scores of the queries in registers by cap * tanh(score / cap).
void cap_scores(float* scores, std::size_t queries, std::size_t tokens, part_of_page block, float cap) {
  for (std::size_t j = 0; j < queries; ++j)
    soft_cap_row(scores + j * tokens + block.from, block.to - block.from, 1, cap);
}

// Replaces the scores of the queries in registers by weights. shrink[j] becomes the factor that rescales the
// earlier sums of query j.
template <std::size_t queries>
void weigh_queries(const attention_tile& t, const attention_room& room,
                   const part_of_page (&of_each)[queries], part_of_page block, std::size_t first,
                   float* shrink) {
  constexpr std::size_t padded = (queries + lanes - 1) / lanes * lanes;
  const std::size_t tokens = t.kv.page_tokens;
  float* largest = t.into.largest + first;
  float grown[padded] = {};
  const auto whole = [&](part_of_page seen) { return seen.from == block.from && seen.to == block.to; };
  for (std::size_t j = 0; j < queries; ++j) {
    if (of_each[j].empty()) continue;
    float* scores = room.scores + j * tokens;
    const float now = whole(of_each[j]) ? largest_in<false>(scores, of_each[j], block, largest[j])
                                        : largest_in<true>(scores, of_each[j], block, largest[j]);
    grown[j] = largest[j] - now;
    largest[j] = now;
  }
  for (std::size_t j = 0; j < padded; j += lanes) store_as(shrink + j, exp_of(load_f32(grown + j)));
  for (std::size_t j = 0; j < queries; ++j) {
    float* scores = room.scores + j * tokens;
    float* totals = room.totals + (first + j) * lanes;
    if (of_each[j].empty())
      std::memset(scores + block.from, 0, (block.to - block.from) * sizeof(float));
    else if (whole(of_each[j]))
      weigh<false>(scores, block, largest[j], shrink[j], totals);
    else
      weigh<true>(scores, block, largest[j], shrink[j], totals);
  }
}

// Adds one page to the sums of queries [first, first + queries). Where the room widens, `page` has f32, and
// room.keys holds its transposed keys.
template <std::size_t queries, kv_type type>
void fold_queries(const attention_tile& t, const attention_room& room, const page_rows& page,
                  std::uint32_t begin, std::size_t first) {
  const std::size_t width = t.kv.head_dim, tokens = t.kv.page_tokens;
  part_of_page of_each[queries], seen{0, 0};
  for (std::size_t j = 0; j < queries; ++j) {
    of_each[j] = seen_by(t.queries[first + j], begin, t.kv.page_tokens);
    seen = both(seen, of_each[j]);
  }
  if (seen.empty()) return;
  constexpr std::uint32_t step = lanes;
  const part_of_page block{seen.from / step * step, (seen.to + step - 1) / step * step};

  if (type == kv_type::f32 && room.widens)
    in_blocks(block.from, block.to, [&]<std::size_t n>(std::size_t at) __attribute__((always_inline)) {
      score_block<queries, n>(room, width, tokens, first, at);
    });
  else
    score_rows<queries, type>(room, page, width, tokens, block);
  if (t.rule.cap != 0) cap_scores(room.scores, queries, tokens, block, t.rule.cap);
  float shrink[(queries + lanes - 1) / lanes * lanes];
  weigh_queries(t, room, of_each, block, first, shrink);
  float* sums = t.into.sums + first * width;
  in_blocks(
      0, width, [&]<std::size_t n>(std::size_t at) __attribute__((always_inline)) {
        gather_block<queries, n, type>(room, page.values, width, tokens, seen, shrink, sums, at);
      });
  if (const std::size_t rest = width % lanes; type == kv_type::f32 && rest != 0)
    gather_block<queries, 1, kv_type::f32>(room, page.values, width, tokens, seen, shrink, sums, width - rest,
                                           rest);
}

// The same for `count` <= most queries.
template <kv_type type>
void fold_some(const attention_tile& t, const attention_room& room, const page_rows& page,
               std::uint32_t begin, std::size_t first, std::size_t count) {
  switch (count) {
    case 1:
      return fold_queries<1, type>(t, room, page, begin, first);
    case 2:
      return fold_queries<2, type>(t, room, page, begin, first);
    case 3:
      return fold_queries<3, type>(t, room, page, begin, first);
    case 4:
      return fold_queries<4, type>(t, room, page, begin, first);
    case 5:
      return fold_queries<5, type>(t, room, page, begin, first);
    case most:
      return fold_queries<most, type>(t, room, page, begin, first);
  }
}

page_rows rows_of(const attention_tile& t, std::uint32_t page) {
  const auto place = [&](std::uint32_t p) {
    return t.kv.place(static_cast<std::uint64_t>(t.pages[p]), t.head);
  };
  const auto *keys = static_cast<const std::byte*>(t.kv.keys),
             *values = static_cast<const std::byte*>(t.kv.values);
  const std::uint64_t here = place(page), next = place(page + 1 < t.last_page ? page + 1 : page);
  return {keys + here, values + here, keys + next, values + next};
}

// Prefetches bytes [from, to) of the next page's keys, and of its values.
WEIR_INLINE void ask_for(const page_rows& page, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; i += line_bytes) {
    __builtin_prefetch(page.next_keys + i);
    __builtin_prefetch(page.next_values + i);
  }
}

// Widens the stored rows of `head` that cover `seen` in whole vectors of tokens. Returns the page's rows in
// f32: these, or `head` itself if it has f32.
const std::byte* widen(const attention_tile& t, const attention_room& room, const std::byte* head,
                       part_of_page seen) {
  const std::size_t width = t.kv.head_dim, tokens = t.kv.page_tokens;
  if (t.kv.type == kv_type::f32) return head;
  if (t.kv.type == kv_type::q8) widen_scales(head, width, tokens, room.scales);
  with_kv_type(t.kv.type, [&]<kv_type type>() {
    widen_rows<type>(head, width, tokens, seen.from / lanes * lanes, (seen.to + lanes - 1) / lanes * lanes,
                     room.scales, room.rows);
  });
  return reinterpret_cast<const std::byte*>(room.rows);
}

// Adds a page that is widened first, to all queries of the tile.
void fold_widened(const attention_tile& t, const attention_room& room, page_rows page, std::uint32_t begin,
                  part_of_page seen) {
  const std::size_t bytes = t.kv.page_tokens * kv_row_bytes(t.kv.type, t.kv.head_dim),
                    share = bytes * most / t.count;
  const auto* keys = reinterpret_cast<const float*>(widen(t, room, page.keys, seen));
  turn_keys(keys, t.kv.head_dim, t.kv.page_tokens, seen, room.keys);
  page.values = widen(t, room, page.values, seen);
  std::size_t j = 0;
  for (std::size_t at = 0; j + most <= t.count; j += most, at += share) {
    ask_for(page, at, at + share < bytes ? at + share : bytes);
    fold_queries<most, kv_type::f32>(t, room, page, begin, j);
  }
  fold_some<kv_type::f32>(t, room, page, begin, j, t.count - j);
}

// Adds a page whose stored numbers are widened in registers.
template <kv_type type>
void fold_stored(const attention_tile& t, const attention_room& room, const page_rows& page,
                 std::uint32_t begin) {
  if constexpr (type == kv_type::q8) {
    const std::size_t codes = std::size_t{t.kv.head_dim} * t.kv.page_tokens;
    ask_for(page, codes, codes / most_kv_group * (most_kv_group + facts(type).scale_bytes));
    widen_scales(page.values, t.kv.head_dim, t.kv.page_tokens, room.scales);
  }
  fold_some<type>(t, room, page, begin, 0, t.count);
}

void fold_page(const attention_tile& t, const attention_room& room, std::uint32_t index) {
  const std::uint32_t begin = index * t.kv.page_tokens;
  part_of_page seen{0, 0};
  for (std::size_t j = 0; j < t.count; ++j) seen = both(seen, seen_by(t.queries[j], begin, t.kv.page_tokens));
  if (seen.empty()) return;
  const page_rows page = rows_of(t, index);
  if (room.widens) return fold_widened(t, room, page, begin, seen);
  with_kv_type(t.kv.type, [&]<kv_type type>() { fold_stored<type>(t, room, page, begin); });
}

void attend(const attention_tile& t) {
  const std::size_t width = t.kv.head_dim, tokens = t.kv.page_tokens;
  attention_room room{};
  room.q = t.scratch;
  room.keys = room.q + t.count * width;
  room.rows = room.keys + width * tokens;
  room.scores = room.rows + width * tokens;
  room.totals = room.scores + most * tokens;
  room.scales = room.totals + t.count * lanes;
  // Widening in registers is by whole vectors, and by whole groups of q8.
  room.widens = t.count > most || (t.kv.type != kv_type::f32 && width % most_kv_group != 0);
  for (std::size_t j = 0; j < t.count; ++j) {
    if (j + ahead < t.count)
      for (std::size_t i = 0; i < width; i += line) __builtin_prefetch(t.queries[j + ahead].q + i);
    const float scale = t.queries[j].scale;
    for (std::size_t i = 0; i < width; ++i) room.q[j * width + i] = t.queries[j].q[i] * scale;
    if (t.kv.type == kv_type::q8) turn_row(room.q + j * width, width);
    t.into.largest[j] = -__builtin_inff();
  }
  std::memset(room.totals, 0, t.count * lanes * sizeof(float));
  std::memset(t.into.sums, 0, t.count * width * sizeof(float));
  for (std::uint32_t page = t.first_page; page < t.last_page; ++page) fold_page(t, room, page);
  for (std::size_t j = 0; j < t.count; ++j) t.into.total[j] = sum_of(load_f32(room.totals + j * lanes));
}

// Merges two states (simd.h). The total of a query that attends to nothing in a part is 0 there.
void merge(const attention_sums& into, const attention_sums& part, std::size_t count, std::size_t width) {
  for (std::size_t j = 0; j < count; ++j) {
    if (part.total[j] == 0) continue;
    const float largest = part.largest[j] > into.largest[j] ? part.largest[j] : into.largest[j];
    const float old = into.total[j] == 0 ? 0.0f : exp_of(all(into.largest[j] - largest))[0];
    const float more = exp_of(all(part.largest[j] - largest))[0];
    into.total[j] = rounded(into.total[j] * old) + part.total[j] * more;
    into.largest[j] = largest;
    float *sums = into.sums + j * width, *from = part.sums + j * width;
    for (std::size_t i = 0; i < width; ++i) sums[i] *= old;
    for (std::size_t i = 0; i < width; ++i) sums[i] += from[i] * more;
  }
}

// What a query's sums are multiplied by: 1 / total, where the sink has a share of the total, too.
WEIR_INLINE float share_of(float total, float largest, const float* sink) {
  if (!sink) return 1.0f / total;
  const float most = largest > *sink ? largest : *sink;
  const float shrink = exp_of(all(largest - most))[0];
  return shrink / (rounded(total * shrink) + exp_of(all(*sink - most))[0]);
}

// Writes the outputs, turned back where values are turned. Each sum has 0 added to it, which makes 0 of -0:
// whether a sum is -0 depends on how many zeros were added before.
void finish(const attention_tile& t) {
  const std::size_t width = t.kv.head_dim;
  for (std::size_t j = 0; j < t.count; ++j) {
    const float share = share_of(t.into.total[j], t.into.largest[j], t.queries[j].sink);
    const float* sums = t.into.sums + j * width;
    float* out = t.queries[j].out;
    if (j + ahead < t.count)
      for (std::size_t i = 0; i < width; i += line) __builtin_prefetch(t.queries[j + ahead].out + i, 1);
    for (std::size_t i = 0; i < width; ++i) out[i] = sums[i] * share + 0.0f;
    if (t.kv.type == kv_type::q8) turn_row(out, width);
  }
}

}  // namespace
}  // namespace weir::kernels
