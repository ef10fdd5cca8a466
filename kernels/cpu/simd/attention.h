// attention.h — softmax attention of many queries over some pages of one sequence, in one pass.
//
// Each page is read once. Its keys are transposed, so that a vector holds one dimension of many tokens. Then
// all queries go over the page, a few at a time in registers: the scores of the page, their running maximum,
// the weights, and the weighted sum of values, which is rescaled as the maximum grows (Milakov and Gimelshein
// 2018, «Online normalizer calculation for softmax»).
//
// A query takes pages and positions in one order, and positions that it does not attend to are added as zero:
// its result is the same bits whatever queries share the tile.
#pragma once

#include "kernels/cpu/simd/vector.h"

namespace weir::kernels {
namespace {

constexpr std::size_t most = 6;                    // queries in registers at once
constexpr std::size_t wide = lanes == 16 ? 4 : 2;  // vectors at once: most * wide sums in registers
constexpr std::size_t line = 16;                   // floats of a cache line
constexpr std::size_t ahead = 8;  // queries and outputs lie far apart: each is prefetched this many early

struct attention_room {
  float* q;       // [count, head_dim] scaled
  float* keys;    // [head_dim, page_tokens] of the present page
  float* scores;  // [most, page_tokens] of the queries in registers; later their weights
  float* totals;  // [count, lanes] sums of weights so far
};

// One head's part of a page.
struct page_rows {
  const float *keys, *values;            // [page_tokens, head_dim]
  const float *next_keys, *next_values;  // of the next page; of this one where it is the last
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

// Computes the scores from keys that are not transposed; they are transposed in registers. This is for tiles
// whose queries all fit in registers, since no other queries need the transposed keys. The next keys and the
// values of these tokens are prefetched, in the order in which they lie in memory.
template <std::size_t queries>
void score_rows(const attention_room& room, const page_rows& page, std::size_t width, std::size_t tokens,
                part_of_page block) {
  for (std::size_t p = block.from; p < block.to; p += lanes) {
    const float* coming = p + lanes < block.to ? page.keys + (p + lanes) * width : page.next_keys;
    const float* values = page.values + p * width;
    vec sums[queries] = {};
    std::size_t i = 0;
    for (; i + lanes <= width; i += lanes) {
      vec rows[lanes];
      WEIR_UNROLL
      for (std::size_t r = 0; r < lanes; ++r) rows[r] = load_f32(page.keys + (p + r) * width + i);
      WEIR_UNROLL
      for (std::size_t r = 0; r < lanes * lanes / line; ++r) {
        __builtin_prefetch(coming + i * lanes + r * line);
        __builtin_prefetch(values + i * lanes + r * line);
      }
      transpose(rows);
      WEIR_UNROLL
      for (std::size_t r = 0; r < lanes; ++r)
        WEIR_UNROLL
        for (std::size_t j = 0; j < queries; ++j) sums[j] += rows[r] * room.q[j * width + i + r];
    }
    for (; i < width; ++i) {
      vec column;
      for (std::size_t r = 0; r < lanes; ++r) column[r] = page.keys[(p + r) * width + i];
      for (std::size_t j = 0; j < queries; ++j) sums[j] += column * room.q[j * width + i];
    }
    for (std::size_t j = 0; j < queries; ++j) store_as(room.scores + j * tokens + p, sums[j]);
  }
}

// sums = sums * shrink + weights · values over positions `seen`, for `vectors` vectors of dimensions from
// `at` on. With `rest` it is for `rest` < lanes dimensions from `at` on: the last ones of the head. Every
// dimension goes through the same vector operations.
template <std::size_t queries, std::size_t vectors>
WEIR_INLINE void gather_block(const attention_room& room, const float* values, std::size_t width,
                              std::size_t tokens, part_of_page seen, const float* shrink, float* to,
                              std::size_t at, std::size_t rest = 0) {
  const auto load = [&](const float* from) __attribute__((always_inline)) {
    return vectors == 1 && rest != 0 ? load_part<dtype::f32>(from, 0, rest) : load_f32(from);
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
    for (std::size_t v = 0; v < vectors; ++v) x[v] = load(values + p * width + at + v * lanes);
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

// Calls f.operator()<n>(at) for blocks of n <= wide vectors that cover [at, end) but for less than one
// vector.
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

// Adds one page to the sums of queries [first, first + queries). Where the tile has more than `most` queries,
// room.keys holds the page's transposed keys.
template <std::size_t queries>
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

  if (t.count <= most)
    score_rows<queries>(room, page, width, tokens, block);
  else
    in_blocks(block.from, block.to, [&]<std::size_t n>(std::size_t at) __attribute__((always_inline)) {
      score_block<queries, n>(room, width, tokens, first, at);
    });
  float shrink[(queries + lanes - 1) / lanes * lanes];
  weigh_queries(t, room, of_each, block, first, shrink);
  float* sums = t.into.sums + first * width;
  in_blocks(0, width, [&]<std::size_t n>(std::size_t at) __attribute__((always_inline)) {
    gather_block<queries, n>(room, page.values, width, tokens, seen, shrink, sums, at);
  });
  if (const std::size_t rest = width % lanes)
    gather_block<queries, 1>(room, page.values, width, tokens, seen, shrink, sums, width - rest, rest);
}

page_rows rows_of(const attention_tile& t, std::uint32_t page) {
  const auto place = [&](std::uint32_t p) {
    return (static_cast<std::size_t>(t.pages[p]) * t.kv.heads + t.head) * t.kv.page_tokens * t.kv.head_dim;
  };
  const std::size_t here = place(page), next = place(page + 1 < t.last_page ? page + 1 : page);
  return {t.kv.keys + here, t.kv.values + here, t.kv.keys + next, t.kv.values + next};
}

// Prefetches floats [from, to) of the next page's keys, and of its values.
WEIR_INLINE void ask_for(const page_rows& page, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; i += line) {
    __builtin_prefetch(page.next_keys + i);
    __builtin_prefetch(page.next_values + i);
  }
}

void fold_page(const attention_tile& t, const attention_room& room, std::uint32_t index) {
  const std::uint32_t begin = index * t.kv.page_tokens;
  part_of_page seen{0, 0};
  for (std::size_t j = 0; j < t.count; ++j) seen = both(seen, seen_by(t.queries[j], begin, t.kv.page_tokens));
  if (seen.empty()) return;
  const page_rows page = rows_of(t, index);
  const std::size_t floats = std::size_t{t.kv.page_tokens} * t.kv.head_dim, share = floats * most / t.count;
  if (t.count > most) turn_keys(page.keys, t.kv.head_dim, t.kv.page_tokens, seen, room.keys);
  std::size_t j = 0;
  for (std::size_t at = 0; j + most <= t.count; j += most, at += share) {
    if (t.count > most) ask_for(page, at, at + share < floats ? at + share : floats);
    fold_queries<most>(t, room, page, begin, j);
  }
  switch (t.count - j) {
    case 1:
      return fold_queries<1>(t, room, page, begin, j);
    case 2:
      return fold_queries<2>(t, room, page, begin, j);
    case 3:
      return fold_queries<3>(t, room, page, begin, j);
    case 4:
      return fold_queries<4>(t, room, page, begin, j);
    case 5:
      return fold_queries<5>(t, room, page, begin, j);
  }
}

void attend(const attention_tile& t) {
  const std::size_t width = t.kv.head_dim, tokens = t.kv.page_tokens;
  attention_room room{};
  room.q = t.scratch;
  room.keys = room.q + t.count * width;
  room.scores = room.keys + width * tokens;
  room.totals = room.scores + most * tokens;
  for (std::size_t j = 0; j < t.count; ++j) {
    if (j + ahead < t.count)
      for (std::size_t i = 0; i < width; i += line) __builtin_prefetch(t.queries[j + ahead].q + i);
    for (std::size_t i = 0; i < width; ++i) room.q[j * width + i] = t.queries[j].q[i] * t.rule.scale;
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

// Writes the outputs. Each sum has 0 added to it, which makes 0 of -0: whether a sum is -0 depends on how
// many zeros were added before.
void finish(const attention_tile& t) {
  const std::size_t width = t.kv.head_dim;
  for (std::size_t j = 0; j < t.count; ++j) {
    const float share = 1.0f / t.into.total[j], *sums = t.into.sums + j * width;
    float* out = t.queries[j].out;
    if (j + ahead < t.count)
      for (std::size_t i = 0; i < width; i += line) __builtin_prefetch(t.queries[j + ahead].out + i, 1);
    for (std::size_t i = 0; i < width; ++i) out[i] = sums[i] * share + 0.0f;
  }
}

}  // namespace
}  // namespace weir::kernels
