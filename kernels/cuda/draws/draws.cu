#include "kernels/cuda/draws/draws.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "kernels/cuda/decoder_room.h"
#include "kernels/cuda/device/spin.h"

namespace weir::kernels::cuda {

namespace {

// The words of a draw's lists (draw_order): two for each seen token and each bias, one for each masked token,
// and those of the allowed tokens.
std::size_t words_of(const decoder_draw& w) {
  return 2 * w.seen.size() + 3 * w.weighted.size() + 2 * w.biases.size() + w.masked.size() + w.allowed.size();
}

constexpr auto not_drawn = static_cast<draw_state>(-1);  // the state of a result that has not arrived

}  // namespace

bool draw_launcher::reserve(std::uint32_t draws, std::uint32_t vocab) {
  const std::size_t ids = draws * sizeof(std::int32_t), results = draws * sizeof(draw_result),
                    orders = draws * sizeof(draw_order), logprobs = draws * sizeof(draw_logprobs),
                    rares = draws * sizeof(rare_order), surprises = draws * sizeof(float);
  orders_.reserve(orders);
  rares_.reserve(rares);
  surprises_.reserve(surprises, true);
  const bool moved = along_.reserve(orders) | results_.reserve(results, true) |
                     logprobs_.reserve(logprobs, true) | ids_.reserve(ids, true);
  has_room_ = reserve_words(draw_words(draws, vocab)) && orders_.holds(orders) && along_.holds(orders) &&
              results_.holds(results) && logprobs_.holds(logprobs) && ids_.holds(ids) &&
              rares_.holds(rares) && surprises_.holds(surprises) && reserve_rare(least_rare_rows, vocab);
  return moved;
}

bool draw_launcher::reserve_words(std::size_t words) {
  words = std::max(most_words_, words);
  const std::size_t bytes = words * 4;
  words_.reserve(bytes);
  words_host_.reserve(bytes);
  saved_.reserve(bytes);
  const bool there = words_.holds(bytes) && words_host_.holds(bytes) && saved_.holds(bytes);
  most_words_ = there ? words : 0;  // 0: the old memory is freed; begin() reserves again
  return there;
}

bool draw_launcher::reserve_rare(std::size_t draws, std::uint32_t vocab) {
  const std::size_t row = rare_room(vocab) * sizeof(float);
  for (std::size_t rows = std::min(draws, most_at_once_); rows > rows_at_once_; rows /= 2) {
    rare_room_.reserve(rows * row);
    rows_at_once_ = rare_room_.holds(rows * row) ? rows : 0;                     // 0: the old memory is freed
    if (rows_at_once_ == 0) most_at_once_ = std::max<std::size_t>(rows / 2, 1);  // is not asked for again
  }
  return rows_at_once_ > 0;
}

// If no draw has lists, and none is a rare one, all draws wait for a step. Otherwise all are launched: at
// once where their lists fit into the reserved memory, which is nearly always so, else in several batches,
// one after another.
bool draw_launcher::begin(std::span<const decoder_draw> draws, float* logits, std::uint32_t vocab) {
  const auto rare = static_cast<std::size_t>(
      std::ranges::count_if(draws, [](const decoder_draw& w) { return w.rare.has_value(); }));
  if (rare > 0 && !reserve_rare(rare, vocab)) return false;
  rare_ = 0;
  for (std::size_t first = 0; first < draws.size() && !d_.failed();) {
    std::size_t next = first, words = 0;
    for (; next < draws.size() && words + words_of(draws[next]) <= most_words_; ++next)
      words += words_of(draws[next]);
    if (next == first) {  // this draw alone has longer lists than fit
      if (!reserve_words(words_of(draws[first]))) return false;
      continue;
    }
    const std::size_t count = next - first;
    if (first > 0) d_.sync();  // the new lists overwrite those of the batch before
    const bool waits = words == 0 && count == draws.size() && rare == 0;
    const std::size_t rare_before = rare_;
    write(draws.subspan(first, count), first, (waits ? along_ : orders_).as<draw_order>() + first);
    if (waits) {
      waiting_ = static_cast<std::uint32_t>(count);
      break;
    }
    if (words > 0)
      WEIR_CUDA(d_, cudaMemcpyAsync(words_.as<void>(), words_host_.as<void>(), words * 4,
                                    cudaMemcpyHostToDevice, d_.stream));
    if (rare_ - rare_before < count) sample(first, count, logits, vocab);
    sample_rare(rare_before, logits, vocab);
    first = next;
  }
  return !d_.failed();
}

void draw_launcher::write(std::span<const decoder_draw> draws, std::size_t first, draw_order* to) {
  auto* result = results_.as<draw_result>() + first;
  auto* word = words_host_.as<std::uint32_t>();
  std::uint32_t at = 0;
  for (const decoder_draw& w : draws) {
    draw_order& o = *to++;
    static_cast<draw_numbers&>(o) = w;
    o.lists_at = at;
    o.seen = static_cast<std::uint32_t>(w.seen.size() + w.weighted.size());
    if (!w.weighted.empty()) o.repetition = 0;
    for (const auto& e : w.weighted) {
      word[at++] = static_cast<std::uint32_t>(e.id);
      word[at++] = std::bit_cast<std::uint32_t>(e.factor);
      word[at++] = std::bit_cast<std::uint32_t>(e.minus);
    }
    for (const auto& e : w.seen) {
      word[at++] = static_cast<std::uint32_t>(e.id);
      word[at++] = e.in_output;
    }
    o.biases = static_cast<std::uint32_t>(w.biases.size());
    for (const auto& e : w.biases) {
      word[at++] = static_cast<std::uint32_t>(e.id);
      word[at++] = std::bit_cast<std::uint32_t>(e.value);
    }
    o.masked = static_cast<std::uint32_t>(w.masked.size());
    for (const std::int32_t id : w.masked) word[at++] = static_cast<std::uint32_t>(id);
    std::ranges::copy(w.allowed, word + at);
    at += static_cast<std::uint32_t>(w.allowed.size());
    (result++)->state = not_drawn;
    const std::size_t place = first++;
    surprises_.as<float>()[place] = 0;
    if (!w.rare) continue;
    rare_order& r = rares_.as<rare_order>()[rare_++];
    static_cast<draw_order&>(r) = o;
    r.rare = *w.rare;
    r.place = static_cast<std::uint32_t>(place);
    o.row = no_draw;
  }
}

void draw_launcher::start(float* logits, std::uint32_t vocab) {
  if (waiting_ == 0) return;
  std::copy_n(along_.as<draw_order>(), waiting_, orders_.as<draw_order>());
  sample(0, std::exchange(waiting_, 0), logits, vocab);
}

void draw_launcher::sample(std::size_t first, std::size_t count, float* logits, std::uint32_t vocab) {
  sample_rows(d_, orders_.as<draw_order>() + first, static_cast<std::uint32_t>(count),
              words_.as<std::uint32_t>(), saved_.as<float>(), logits, vocab,
              results_.as<draw_result>() + first, logprobs_.as<draw_logprobs>() + first,
              ids_.as<std::int32_t>() + first);
}

void draw_launcher::sample_rare(std::size_t first, const float* logits, std::uint32_t vocab) {
  for (; first < rare_; first += rows_at_once_)
    sample_rare_rows(d_, rares_.as<rare_order>() + first,
                     static_cast<std::uint32_t>(std::min(rows_at_once_, rare_ - first)),
                     words_.as<std::uint32_t>(), saved_.as<float>(), logits, vocab, rare_room_.as<float>(),
                     results_.as<draw_result>(), surprises_.as<float>(), logprobs_.as<draw_logprobs>(),
                     ids_.as<std::int32_t>());
}

void draw_launcher::go_along(std::uint32_t most) {
  for (std::uint32_t i = waiting_; i < most; ++i) along_.as<draw_order>()[i].row = no_draw;
  waiting_ = 0;
}

void draw_launcher::record(std::uint32_t most, float* logits, std::uint32_t vocab) {
  sample_rows(d_, along_.as<draw_order>(), most, nullptr, nullptr, logits, vocab, results_.as<draw_result>(),
              logprobs_.as<draw_logprobs>(), ids_.as<std::int32_t>());
}

bool draw_launcher::collect(std::span<decoder_result> out, float* logits, std::uint32_t vocab) {
  start(logits, vocab);
  if (d_.failed()) return false;
  auto* results = results_.as<draw_result>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::atomic_ref state(results[i].state);
    if (!spin_until(d_, [&] { return state.load(std::memory_order_acquire) != not_drawn; })) return false;
    out[i] = {results[i].id, results[i].state, surprises_.as<float>()[i]};
  }
  return true;
}

}  // namespace weir::kernels::cuda
