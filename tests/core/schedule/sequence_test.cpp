#include "core/schedule/sequence.h"

#include <catch2/catch.hpp>

#include "tests/support/schedule_rig.h"

namespace weir::tests::sequence_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

// One sequence and what it needs, without a scheduler.
struct rig {
  toy_model model;
  page_pool pool{8};
  token_table text{*letters(61)};
  sequence s;
  recording_sink& sink;

  explicit rig(job j, std::uint32_t longest = 512)
      : s(std::move(j), model.info(), longest), sink(static_cast<recording_sink&>(*s.asked.sink)) {}
  ~rig() { s.give_back(pool); }

  void enter(std::uint64_t admission = 0) {
    s.enter(admission, {}, model.info().vocab_size);
    REQUIRE(s.pages.grow(pool, s.length()));
  }
  bool accept(token_id id, time_point at = {}) {
    return s.accept({id, at}, text) == sequence::accepted::goes_on;
  }
};

}  // namespace

TEST_CASE("sequence: phases follow each other from the queue to the end") {
  using enum sequence_phase;
  rig r(numbered_job(1, 3, 2));
  CHECK(r.s.phase() == waiting);
  CHECK_FALSE(r.s.in_batch());
  r.enter();
  CHECK(r.s.phase() == running);
  r.s.hold(true);
  CHECK(r.s.phase() == held);
  CHECK(r.s.in_batch());
  r.s.hold(false);
  r.s.await_draw(5);
  CHECK(r.s.awaits());
  CHECK(r.s.row_token(r.s.length()) == drawn_by(5));
  CHECK(r.s.take_draw() == 5);
  CHECK_FALSE(r.s.awaits());
  CHECK(r.accept(7));
  CHECK_FALSE(r.accept(8));  // max_tokens
  CHECK(r.s.how().reason == finish_reason::length);
  r.s.close(r.s.how().reason, r.pool);
  CHECK(r.s.phase() == ended);
  CHECK(r.pool.used() == 0);
  CHECK(r.s.settle());
  CHECK(r.sink.ids() == std::vector<token_id>{7, 8});
  CHECK(r.sink.finishes == 1);
}

TEST_CASE("sequence: an awaited token needs a row, but for the last one of its output") {
  rig r(numbered_job(1, 3, 2));
  r.enter();
  CHECK(r.s.expected() == 3);
  CHECK(r.s.pending() == 3);
  CHECK_FALSE(r.s.decoding());
  r.s.set_computed(3);
  r.s.await_draw(0);
  CHECK(r.s.expected() == 4);
  CHECK(r.s.decoding());
  CHECK(r.s.pending() == 1);
  r.s.take_draw();
  CHECK(r.accept(7));
  r.s.set_computed(4);
  r.s.await_draw(0);
  CHECK(r.s.expected() == 4);  // nothing is sampled after the second token
  CHECK(r.s.pending() == 0);
}

TEST_CASE("sequence: preempted while it awaits a draw, it forgets the draw and keeps its tokens") {
  rig r(numbered_job(1, 100, 8));
  r.enter(3);
  r.s.set_computed(100);
  CHECK(r.accept(7));
  r.s.await_draw(0);
  r.s.preempt(r.pool);
  CHECK(r.s.phase() == sequence_phase::preempted);
  CHECK(r.s.preemptions() == 1);
  CHECK(r.pool.used() == 0);
  CHECK(r.s.computed() == 0);
  CHECK(r.s.length() == 101);
  r.enter(9);
  CHECK_FALSE(r.s.awaits());
  CHECK(r.s.ordinal() == 9);
  CHECK(r.s.pending() == 101);
  CHECK_FALSE(r.s.decoding());  // its rows are lost

  r.s.found(64);  // rows that it had computed itself are no prompt tokens found in the cache
  CHECK(r.s.cached() == 0);
}

TEST_CASE("sequence: prompt tokens that the cache had are counted once, and output tokens never") {
  rig r(numbered_job(1, 100, 100));
  r.enter();
  r.s.found(64);
  CHECK(r.s.cached() == 64);
  r.s.found(64);
  CHECK(r.s.cached() == 64);
  r.s.found(120);
  CHECK(r.s.cached() == 100);
}

TEST_CASE("sequence: the longest output is what max_tokens and the length of a sequence leave") {
  CHECK(rig(numbered_job(1, 100, 8), 512).s.max_output() == 8);
  CHECK(rig(numbered_job(1, 100, 1000), 512).s.max_output() == 412);
  CHECK(rig(numbered_job(1, 100, 8), 101).s.max_output() == 1);
}

TEST_CASE("sequence: a stop id is sampled and not output, and min_tokens lets it pass") {
  job j = numbered_job(1, 3, 8);
  j.stop_token_ids = {9, 9 + 64};  // two ids with one bit in the filter
  j.min_tokens = 1;
  rig r(std::move(j));
  r.enter();
  CHECK(r.accept(9));  // below min_tokens
  CHECK(r.accept(9 + 32));
  CHECK_FALSE(r.accept(9));
  CHECK(r.s.how().reason == finish_reason::stop);
  CHECK(r.s.output().size() == 2);
  CHECK(r.s.sampled() == 3);
}

TEST_CASE("sequence: tokens that may begin a stop string are withheld until they do not") {
  job j = numbered_job(1, 3, 8);
  j.stop = {"bcd"};
  rig r(std::move(j));
  r.enter();
  for (const token_id id : {0, 1, 2}) CHECK(r.accept(id));  // a b c
  CHECK(r.s.decided() == 1);
  r.s.offer();
  CHECK(r.sink.ids() == std::vector<token_id>{0});
  CHECK(r.accept(0));
  CHECK(r.s.decided() == 4);
  for (const token_id id : {1, 2}) CHECK(r.accept(id));
  CHECK_FALSE(r.accept(3));
  r.s.close(r.s.how().reason, r.pool);
  CHECK(r.s.settle());
  CHECK(r.sink.ids() == std::vector<token_id>{0, 1, 2, 0});
}

TEST_CASE("sequence: a sink without room is offered the rest again, and settle_now() drops it") {
  rig r(numbered_job(1, 3, 3));
  r.enter();
  r.sink.room = 1;
  CHECK(r.accept(4));
  CHECK(r.accept(5));
  r.s.offer();
  CHECK(r.s.delivered() == 1);
  CHECK(r.s.tail_waits());
  CHECK_FALSE(r.accept(6));
  r.s.close(r.s.how().reason, r.pool);
  CHECK_FALSE(r.s.settle());
  CHECK(r.sink.finishes == 0);
  r.sink.room = 1;
  r.s.settle_now();
  CHECK(r.sink.ids() == std::vector<token_id>{4, 5});
  CHECK(r.sink.finishes == 1);
  CHECK(r.sink.end->output_tokens == 3);
}

TEST_CASE("sequence: the ending tells the first token, the last one and the longest gap") {
  rig r(numbered_job(1, 3, 3));
  r.enter();
  const time_point t{};
  r.accept(4, t + 10ms);
  r.accept(5, t + 70ms);
  r.accept(6, t + 100ms);
  r.s.close(finish_reason::length, r.pool);
  CHECK(r.s.how().first_token == t + 10ms);
  CHECK(r.s.how().last_token == t + 100ms);
  CHECK(r.s.how().max_gap == 60ms);
}

TEST_CASE(
    "sequence: a pause keeps the pages and takes the awaited token, and a preempted one waits afterwards") {
  using enum sequence_phase;
  rig r(numbered_job(1, 3, 8));
  r.s.pause(time_point(1s));
  CHECK(r.s.phase() == paused);
  r.s.resume();
  CHECK(r.s.phase() == waiting);
  r.enter();
  r.s.set_computed(3);
  r.s.await_draw(2);
  r.s.pause(time_point(1s));
  CHECK(r.s.awaits());
  CHECK(r.s.take_draw() == 2);
  CHECK(r.accept(7));
  CHECK(r.s.phase() == paused);
  CHECK(r.pool.used() == 1);
  r.s.preempt(r.pool);
  CHECK(r.s.phase() == paused);
  CHECK(r.pool.used() == 0);
  r.s.resume();
  CHECK(r.s.phase() == preempted);
}

}  // namespace weir::tests::sequence_test
