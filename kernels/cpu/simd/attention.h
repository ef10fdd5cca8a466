// attention.h — softmax attention of a few queries over one sequence's pages, in one pass.
//
// Page by page: scores of the whole page, the running maximum, the weights, and the weighted sum of values,
// rescaled when the maximum grows. A query meets pages and positions in one order, whatever tile or batch it
// is in: same bits.
#pragma once

#include "kernels/cpu/simd/vector.h"

namespace weir::kernels {
namespace {

constexpr std::size_t most = attention_tile::most_queries;
constexpr std::size_t wide = 4;  // vectors that are accumulated at once

struct attention_state {
  float* q;       // [most, head_dim] scaled
  float* sums;    // [most, head_dim] weighted values so far
  float* scores;  // [most, page_tokens]
  float largest[most], total[most];
};

// scores[t] for t in [at, at + vectors * lanes), for all queries at once: each key is loaded once.
template <std::size_t queries, std::size_t vectors>
WEIR_INLINE void score_block(const attention_tile& t, const attention_state& s, const float* keys,
                             std::size_t at) {
  vec sums[queries][vectors] = {};
  for (std::size_t i = 0; i < t.kv.head_dim; ++i) {
    vec k[vectors];
    for (std::size_t v = 0; v < vectors; ++v) k[v] = load_f32(keys + i * t.kv.page_tokens + at + v * lanes);
    for (std::size_t j = 0; j < queries; ++j)
      for (std::size_t v = 0; v < vectors; ++v) sums[j][v] += k[v] * s.q[j * t.kv.head_dim + i];
  }
  for (std::size_t j = 0; j < queries; ++j)
    for (std::size_t v = 0; v < vectors; ++v)
      store_as(s.scores + j * t.kv.page_tokens + at + v * lanes, sums[j][v]);
}

template <std::size_t queries>
void score_page(const attention_tile& t, const attention_state& s, const float* keys) {
  constexpr std::size_t vectors = lanes == 16 ? wide : 2;  // as many accumulators as registers allow
  std::size_t at = 0;
  for (; at + vectors * lanes <= t.kv.page_tokens; at += vectors * lanes)
    score_block<queries, vectors>(t, s, keys, at);
  for (; at + lanes <= t.kv.page_tokens; at += lanes) score_block<queries, 1>(t, s, keys, at);
}

// Scores of query j in [from, to) of this page become weights, all others 0; its sums so far are rescaled.
void weigh(const attention_tile& t, attention_state& s, std::size_t j, std::size_t from, std::size_t to) {
  const std::size_t tokens = t.kv.page_tokens;
  const float nothing = -__builtin_inff();
  float* scores = s.scores + j * tokens;
  for (std::size_t i = 0; i < from; ++i) scores[i] = nothing;
  for (std::size_t i = to; i < tokens; ++i) scores[i] = nothing;

  vec most_of_lane = all(s.largest[j]);
  for (std::size_t i = 0; i < tokens; i += lanes) {
    const vec x = load_f32(scores + i);
    most_of_lane = x > most_of_lane ? x : most_of_lane;
  }
  const float largest = largest_of(most_of_lane);

  vec total = {};
  for (std::size_t i = 0; i < tokens; i += lanes) {
    const vec x = load_f32(scores + i);
    const vec weights = x == all(nothing) ? vec{} : exp_of(x - largest);
    store_as(scores + i, weights);
    total += weights;
  }
  if (largest > s.largest[j] && s.total[j] > 0) {
    const float shrink = exp_of(all(s.largest[j] - largest))[0];
    s.total[j] *= shrink;
    for (std::size_t i = 0; i < t.kv.head_dim; ++i) s.sums[j * t.kv.head_dim + i] *= shrink;
  }
  s.total[j] += sum_of(total);
  s.largest[j] = largest;
}

// sums += weights · values over positions [from, to) of the page, `vectors` vectors of the head at once.
template <std::size_t queries, std::size_t vectors>
WEIR_INLINE void gather_block(const attention_tile& t, const attention_state& s, const float* values,
                              std::size_t from, std::size_t to, std::size_t at) {
  vec sums[queries][vectors];
  for (std::size_t j = 0; j < queries; ++j)
    for (std::size_t v = 0; v < vectors; ++v)
      sums[j][v] = load_f32(s.sums + j * t.kv.head_dim + at + v * lanes);
  for (std::size_t p = from; p < to; ++p) {
    vec x[vectors];
    for (std::size_t v = 0; v < vectors; ++v) x[v] = load_f32(values + p * t.kv.head_dim + at + v * lanes);
    for (std::size_t j = 0; j < queries; ++j)
      for (std::size_t v = 0; v < vectors; ++v) sums[j][v] += x[v] * s.scores[j * t.kv.page_tokens + p];
  }
  for (std::size_t j = 0; j < queries; ++j)
    for (std::size_t v = 0; v < vectors; ++v)
      store_as(s.sums + j * t.kv.head_dim + at + v * lanes, sums[j][v]);
}

template <std::size_t queries>
void gather_page(const attention_tile& t, const attention_state& s, const float* values, std::size_t from,
                 std::size_t to) {
  constexpr std::size_t vectors = lanes == 16 ? wide : 2;
  const std::size_t width = t.kv.head_dim;
  std::size_t at = 0;
  for (; at + vectors * lanes <= width; at += vectors * lanes)
    gather_block<queries, vectors>(t, s, values, from, to, at);
  for (; at + lanes <= width; at += lanes) gather_block<queries, 1>(t, s, values, from, to, at);
  for (; at < width; ++at)
    for (std::size_t j = 0; j < queries; ++j)
      for (std::size_t p = from; p < to; ++p)
        s.sums[j * width + at] += values[p * width + at] * s.scores[j * t.kv.page_tokens + p];
}

template <std::size_t queries>
void attend_page(const attention_tile& t, attention_state& s, std::uint32_t page) {
  const std::uint32_t tokens = t.kv.page_tokens, begin = page * tokens;
  const std::size_t place =
      (static_cast<std::size_t>(t.pages[page]) * t.kv.heads + t.head) * tokens * t.kv.head_dim;
  score_page<queries>(t, s, t.kv.keys + place);
  std::uint32_t first = tokens, last = 0;  // positions of this page that any query sees
  for (std::size_t j = 0; j < queries; ++j) {
    const auto& q = t.queries[j];
    const std::uint32_t from = q.from > begin ? (q.from < begin + tokens ? q.from - begin : tokens) : 0;
    const std::uint32_t to = q.to < begin + tokens ? (q.to > begin ? q.to - begin : 0) : tokens;
    if (from >= to) {
      std::memset(s.scores + j * tokens, 0, tokens * sizeof(float));
      continue;
    }
    weigh(t, s, j, from, to);
    first = from < first ? from : first;
    last = to > last ? to : last;
  }
  if (first < last) gather_page<queries>(t, s, t.kv.values + place, first, last);
}

template <std::size_t queries>
void attend_queries(const attention_tile& t) {
  const std::size_t width = t.kv.head_dim;
  attention_state s{t.scratch, t.scratch + most * width, t.scratch + 2 * most * width, {}, {}};
  std::uint32_t from = t.queries[0].from, to = 0;
  for (std::size_t j = 0; j < queries; ++j) {
    s.largest[j] = -__builtin_inff();
    for (std::size_t i = 0; i < width; ++i) s.q[j * width + i] = t.queries[j].q[i] * t.scale;
    std::memset(s.sums + j * width, 0, width * sizeof(float));
    from = t.queries[j].from < from ? t.queries[j].from : from;
    to = t.queries[j].to > to ? t.queries[j].to : to;
  }
  for (std::uint32_t page = from / t.kv.page_tokens; page * t.kv.page_tokens < to; ++page)
    attend_page<queries>(t, s, page);
  for (std::size_t j = 0; j < queries; ++j)
    for (std::size_t i = 0; i < width; ++i) t.queries[j].out[i] = s.sums[j * width + i] / s.total[j];
}

void attend(const attention_tile& t) {
  switch (t.count) {
    case 1:
      return attend_queries<1>(t);
    case 2:
      return attend_queries<2>(t);
    case 3:
      return attend_queries<3>(t);
    default:
      return attend_queries<4>(t);
  }
}

}  // namespace
}  // namespace weir::kernels
