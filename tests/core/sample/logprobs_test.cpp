#include "core/sample/logprobs.h"

#include <random>

#include "tests/support/log_softmax.h"

namespace weir::tests::logprobs_test {

using namespace weir::core;

TEST_CASE("logprobs are the float64 log-softmax of the logits, and the likeliest tokens in their order") {
  std::mt19937 r(7);
  for (const std::size_t vocab : {1, 2, 19, 20, 21, 320, 1000, 32003, 128256}) {
    sample_scratch scratch(static_cast<std::uint32_t>(vocab));
    for (int kind = 0; kind < 7; ++kind) {
      CAPTURE(vocab, kind);
      const auto row = tests::hard_row(vocab, kind, r);
      const auto finite = tests::ranking(row);
      for (const std::uint32_t top : {0u, 1u, 5u, 20u}) {
        const token_id drawn = finite[r() % finite.size()];
        auto got = tests::poisoned_logprobs();
        compute_logprobs(row, drawn, top, scratch, got);
        tests::check_logprobs(got, row, drawn, top);
      }
    }
  }
}

TEST_CASE("a token that is certain has the logprob 0, and never more") {
  sample_scratch scratch(50);
  std::vector<float> row(50, -INFINITY);
  row[9] = 12.5f;
  draw_logprobs got;
  compute_logprobs(row, 9, 20, scratch, got);
  CHECK(got.drawn.logprob == 0);
  CHECK(got.count == 1);
}

}  // namespace weir::tests::logprobs_test
