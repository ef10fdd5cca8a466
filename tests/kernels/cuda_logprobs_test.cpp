// Logprobs of the sampling kernel, from rows that are hard to rank, beside float64.
#ifdef WEIR_WITH_CUDA
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/cuda/draws/sample.h"
#include "tests/kernels/on_device.h"
#include "tests/support/log_softmax.h"

namespace weir::tests::cuda_logprobs_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

namespace {

template <class T>
class pinned {
 public:
  explicit pinned(std::size_t count) : count_(count) {
    REQUIRE(cudaMallocHost(&at_, count * sizeof(T)) == cudaSuccess);
  }
  pinned(const pinned&) = delete;
  ~pinned() { cudaFreeHost(at_); }
  T* get() const { return static_cast<T*>(at_); }
  T& operator[](std::size_t i) const { return get()[i]; }
  void fill(const T& with) const { std::fill_n(get(), count_, with); }

 private:
  void* at_ = nullptr;
  std::size_t count_;
};

draw_order order_of(std::uint32_t row, std::int32_t top, float temperature, double uniform) {
  draw_order o{};
  o.row = row;
  o.top_logprobs = top;
  o.temperature = temperature;
  o.top_p = 1;
  o.repetition = 1;
  o.uniform = uniform;
  return o;
}

}  // namespace

TEST_CASE("cuda: logprobs are the float64 log-softmax of the row, and the likeliest tokens in their order") {
  device* const d = tests::the_device();
  if (!d) return;
  std::mt19937 r(5);
  constexpr std::uint32_t count = 24;
  const pinned<draw_order> orders(count);
  const pinned<draw_result> results(count);
  const pinned<draw_logprobs> logprobs(count);
  const tests::on_device<std::int32_t> ids(*d, std::vector<std::int32_t>(count));
  for (const std::uint32_t vocab : {1u, 2u, 19u, 21u, 512u, 5000u, 32003u, 128256u}) {
    for (int kind = 0; kind < 7; ++kind) {
      CAPTURE(vocab, kind);
      std::vector<float> rows;
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto row = tests::hard_row(vocab, kind, r);
        rows.insert(rows.end(), row.begin(), row.end());
      }
      const tests::on_device<float> logits(*d, rows);
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::int32_t top = i % 4 == 3 ? -1 : i % 4 == 2 ? 20 : static_cast<std::int32_t>(r() % 21);
        orders[i] = order_of((i * 7) % count, top, i % 3 ? 1.0f : 0.0f, (r() % 1000) / 1000.0);
        if (i % 5 == 1) orders[i].top_k = 3;
      }
      results.fill({-9, static_cast<draw_state>(-1)});
      logprobs.fill(tests::poisoned_logprobs());
      sample_rows(*d, orders.get(), count, nullptr, nullptr, logits.get(), vocab, results.get(),
                  logprobs.get(), ids.get());
      d->sync();
      REQUIRE(d->fault == "");
      for (std::uint32_t i = 0; i < count; ++i) {
        CAPTURE(i, orders[i].top_logprobs);
        REQUIRE(results[i].state == draw_state::drawn);
        const auto row = std::span(rows).subspan(std::size_t{orders[i].row} * vocab, vocab);
        if (orders[i].top_logprobs < 0) {
          CHECK(logprobs[i].count == 77);  // a draw that does not ask writes nothing
        } else {
          const auto top = static_cast<std::uint32_t>(orders[i].top_logprobs);
          tests::check_logprobs(logprobs[i], row, results[i].id, top);
        }
      }
    }
  }
}

TEST_CASE("cuda: logprobs are of the row before penalties, biases and masks, and the row is put back") {
  device* const d = tests::the_device();
  if (!d) return;
  std::mt19937 r(6);
  constexpr std::uint32_t vocab = 9000, count = 8;
  std::vector<float> rows;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto row = tests::hard_row(vocab, static_cast<int>(i % 2), r);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  const tests::on_device<float> logits(*d, rows);
  const pinned<draw_order> orders(count);
  const pinned<draw_result> results(count);
  const pinned<draw_logprobs> logprobs(count);
  const tests::on_device<std::int32_t> ids(*d, std::vector<std::int32_t>(count));
  std::vector<std::uint32_t> words;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto row = std::span(rows).subspan(std::size_t{i} * vocab, vocab);
    const auto best = tests::ranking(row);
    draw_order o = order_of(i, 20, i % 2 ? 0.7f : 0.0f, 0.5);
    o.repetition = 1.7f;
    o.frequency = 0.5f;
    o.lists_at = static_cast<std::uint32_t>(words.size());
    o.seen = 3;  // penalties, a bias and a mask on the likeliest tokens, and on one of them all three
    for (const std::size_t k : {0, 2, 5})
      words.insert(words.end(), {static_cast<std::uint32_t>(best[k]), 2u});
    o.biases = 2;
    for (const auto& [k, bias] : {std::pair<std::size_t, float>{2, 4.0f}, {40, 60.0f}}) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &bias, sizeof bits);
      words.insert(words.end(), {static_cast<std::uint32_t>(best[k]), bits});
    }
    o.masked = 2;
    for (const std::size_t k : {1, 2}) words.push_back(static_cast<std::uint32_t>(best[k]));
    orders[i] = o;
  }
  const tests::on_device<std::uint32_t> lists(*d, words);
  const tests::on_device<float> saved(*d, std::vector<float>(words.size()));
  results.fill({-9, static_cast<draw_state>(-1)});
  logprobs.fill(tests::poisoned_logprobs());
  sample_rows(*d, orders.get(), count, lists.get(), saved.get(), logits.get(), vocab, results.get(),
              logprobs.get(), ids.get());
  d->sync();
  REQUIRE(d->fault == "");
  CHECK(logits.back() == rows);
  for (std::uint32_t i = 0; i < count; ++i) {
    CAPTURE(i);
    const auto row = std::span(rows).subspan(std::size_t{i} * vocab, vocab);
    CHECK(results[i].id == tests::ranking(row)[40]);  // a bias of 60 decides, where a temperature lets it
    tests::check_logprobs(logprobs[i], row, results[i].id, 20);
  }
}

TEST_CASE("cuda: a draw that is a fault tells no logprobs") {
  device* const d = tests::the_device();
  if (!d) return;
  constexpr std::uint32_t vocab = 3000;
  std::vector<float> rows(2 * vocab, 1.0f);
  rows[17] = NAN;
  const tests::on_device<float> logits(*d, rows);
  const pinned<draw_order> orders(2);
  const pinned<draw_result> results(2);
  const pinned<draw_logprobs> logprobs(2);
  const tests::on_device<std::int32_t> ids(*d, std::vector<std::int32_t>(2));
  for (std::uint32_t i = 0; i < 2; ++i) orders[i] = order_of(i, 5, 1, 0.5);
  results.fill({-9, static_cast<draw_state>(-1)});
  logprobs.fill(tests::poisoned_logprobs());
  sample_rows(*d, orders.get(), 2, nullptr, nullptr, logits.get(), vocab, results.get(), logprobs.get(),
              ids.get());
  d->sync();
  CHECK(results[0].state == draw_state::fault);
  CHECK(logprobs[0].count == 77);
  CHECK(results[1].state == draw_state::drawn);
  tests::check_logprobs(logprobs[1], std::span(rows).subspan(vocab), results[1].id, 5);
}

}  // namespace weir::tests::cuda_logprobs_test

#endif
