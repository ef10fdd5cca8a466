// Threads that make masks beside an engine.
#include "actors/mask_pool.h"

#include <catch2/catch.hpp>
#include <thread>

#include "core/engine.h"
#include "tests/support/budget.h"
#include "tests/support/constraints.h"
#include "tests/support/engine_rig.h"

namespace weir::tests::mask_pool_test {

TEST_CASE("mask pool: masks made by threads are those that the owner makes") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    const auto run = [&](std::shared_ptr<core::grammar::mask_helpers> helpers) {
      engine_rig rig(small_config(), letters(61), 4096, how, std::move(helpers));
      const auto views = views_of(letters(61));
      const auto shared = fresh_constraint("([a-f]{1,5}(x|yy)){8}z", views);
      std::vector<std::shared_ptr<recording_sink>> sinks;
      for (std::uint64_t n = 0; n < 24; ++n) {
        auto j = rig.job(n, 100);
        if (n % 3 == 0) j.constraint = shared;
        if (n % 3 == 1) j.constraint = fresh_constraint("(ab|[c-k]{3}){4,9}", views);
        sinks.push_back(rig.submit(std::move(j)));
      }
      rig.run();
      std::vector<std::vector<core::token_id>> out;
      for (const auto& s : sinks) out.push_back(s->ids());
      return out;
    };
    CHECK(run(std::make_shared<actors::mask_pool>(3, 32)) == run(nullptr));
  }
}

TEST_CASE("mask pool: it ends with masks in its queue, and refuses what has no room") {
  const auto views = views_of(letters(61));
  for (unsigned i = 0; i < rounds(20); ++i) {
    actors::mask_pool pool(1, 4);
    unsigned taken = 0;
    for (unsigned n = 0; n < 2000; ++n) {
      auto m = std::make_shared<core::grammar::job_mask>(
          fresh_constraint("[a-z]{3}", views), core::grammar::job_mask::limits{.vocab_size = 61});
      if (!m->begin()) taken += pool.post(m);
    }
    CHECK(taken > 0);
  }
}

TEST_CASE("mask pool: no work is done for a job that is gone") {
  const auto views = views_of(letters(61));
  const auto mask_of = [&](std::shared_ptr<core::grammar::constraint> c) {
    auto m = std::make_shared<core::grammar::job_mask>(std::move(c),
                                                       core::grammar::job_mask::limits{.vocab_size = 61});
    REQUIRE_FALSE(m->begin());
    return m;
  };
  actors::mask_pool pool(1, 4);
  const auto abandoned = fresh_constraint("[a-f]{3}", views), wanted = fresh_constraint("[a-f]{4}", views);
  REQUIRE(pool.post(mask_of(abandoned)));  // held by the queue alone
  const auto last = mask_of(wanted);
  REQUIRE(pool.post(last));
  while (!last->ready()) pool.finish(*last);
  CHECK(wanted->mask_known(wanted->start()));
  CHECK_FALSE(abandoned->mask_known(abandoned->start()));
}

TEST_CASE("mask pool: its threads destroy the masks of jobs that have ended") {
  const auto views = views_of(letters(61));
  std::thread::id where{};
  {
    actors::mask_pool pool(1, 4);
    auto* const m = new core::grammar::job_mask(fresh_constraint("[a-f]{3}", views), {.vocab_size = 61});
    const auto last = std::make_shared<core::grammar::job_mask>(
        fresh_constraint("[a-f]{4}", views), core::grammar::job_mask::limits{.vocab_size = 61});
    pool.discard(std::shared_ptr<core::grammar::job_mask>(m, [&](core::grammar::job_mask* gone) {
      where = std::this_thread::get_id();
      delete gone;
    }));
    REQUIRE_FALSE(last->begin());
    REQUIRE(pool.post(last));
    while (!last->ready()) pool.finish(*last);
  }
  CHECK(where != std::thread::id{});
  CHECK(where != std::this_thread::get_id());
}

}  // namespace weir::tests::mask_pool_test
