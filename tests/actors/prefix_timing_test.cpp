// Whether a key learns what another key has computed: by the time to its first token, by its usage, or by any
// figure that it may read. In virtual time, where each prompt token takes its time and nothing else does.
#include <compare>

#include "tests/actors/service_fixture.h"
#include "tests/support/world.h"

namespace weir::tests::prefix_timing_test {

namespace {

// What the second of two clients sees.
struct sight {
  double ttft_ms = 0, prefill_ms = 0, queue_ms = 0, wait_ms = 0, step_p50_ms = 0;
  std::uint32_t cached_tokens = 0, pages_free = 0, pages_cached = 0;
  std::uint64_t hits = 0, hit_tokens = 0;
  bool operator==(const sight&) const = default;
};

std::string prompt(std::size_t tokens, char of) { return std::string(tokens, of); }

std::shared_ptr<job_stream> run(world& w, actors::service& s, const actors::principal& who,
                                std::string text) {
  auto r = ask(std::move(text), 8);
  r.who = who;
  const auto stream = s.submit(std::move(r), w.get_executor(), [] {});
  REQUIRE(w.run([&] { return stream->state() == phase::done; }));
  return stream;
}

// `theirs`: the prompt of the first client, in a service of its own.
sight seen_by(const actors::principal& who, const std::string& mine, const actors::principal& other,
              const std::string& theirs) {
  world w(1);
  actors::service_options o;
  o.owner.device = "sim";
  o.models.push_back({"sim", "sim:rate=100,prefill=2000"});
  const auto service = w.make_service(std::move(o));
  run(w, *service, other, theirs);
  const auto before = service->stats();
  sight out;
  const auto stream = run(w, *service, who, mine);
  const auto after = service->stats();
  const auto& end = stream->ended();
  out = {end.ttft_ms, end.prefill_ms, end.queue_ms, after.predicted_wait_ms, after.step_p50_ms};
  out.cached_tokens = end.cached_tokens;
  out.pages_free = after.engine.pages_free;
  out.pages_cached = after.engine.pages_cached;
  out.hits = after.engine.prefix_hits - before.engine.prefix_hits;
  out.hit_tokens = after.engine.cached_tokens - before.engine.cached_tokens;
  return out;
}

}  // namespace

TEST_CASE("prefixes: neither times nor figures tell a key what another key has computed") {
  const actors::principal a{1, 0}, b{2, 0}, user{1, 7}, other_user{1, 8};
  const auto guess = prompt(1'000, 'g'), unlike = prompt(1'000, 'u');
  const auto partly = prompt(700, 'g') + prompt(300, 'x');
  // Who has asked before, and who guesses what was asked.
  const std::pair<actors::principal, actors::principal> strangers[] = {
      {a, b}, {b, a}, {a, user}, {user, a}, {user, b}, {user, other_user}};
  for (const auto& [asked, guesses] : strangers) {
    CAPTURE(asked.key, asked.user, guesses.key, guesses.user);
    const auto wrong = seen_by(guesses, guess, asked, unlike);
    CHECK(wrong.ttft_ms > 400);
    CHECK(wrong.cached_tokens == 0);
    CHECK(seen_by(guesses, guess, asked, guess) == wrong);
    CHECK(seen_by(guesses, guess, asked, partly) == wrong);
  }
  const auto own = seen_by(a, guess, a, guess), wrong = seen_by(a, guess, a, unlike);
  CHECK(own.cached_tokens > 900);
  CHECK(own.ttft_ms < wrong.ttft_ms / 4);  // what strangers would see, if they shared
}

}  // namespace weir::tests::prefix_timing_test
