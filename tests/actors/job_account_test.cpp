// What a service counts of the jobs of a request in the accounts that the request names.
#include "actors/job_account.h"

#include <memory>

#include "tests/actors/service_fixture.h"
#include "tests/support/world.h"

namespace weir::tests::job_account_test {

using actors::job_account;

namespace {

struct counted_world {
  explicit counted_world(std::uint64_t seed = 1) : here(seed) {
    actors::service_options o;
    o.owner.device = "sim";
    o.owner.max_batch = 4;
    o.owner.queue = 8;
    o.models.push_back({"sim", "sim:rate=100,prefill=100000"});
    service = here.make_service(std::move(o));
  }
  std::vector<std::shared_ptr<job_stream>> submit(actors::request r, std::uint32_t n = 1) {
    r.accounts = {own, of_name};
    return service->submit(std::move(r), n, here.get_executor(), [] {});
  }
  void run() {
    here.run([&] { return own->unfinished() == 0; });
  }

  world here;
  std::unique_ptr<actors::service> service;
  const std::shared_ptr<job_account> own = std::make_shared<job_account>(),
                                     of_name = std::make_shared<job_account>();
};

}  // namespace

TEST_CASE("job_account: counts what the usage of each job says, the prompt of several choices once") {
  counted_world w;
  const auto one = w.submit(ask("hello", 30)), three = w.submit(ask("prompt", 20), 3);
  CHECK(w.own->unfinished() == 4);
  w.run();
  std::uint64_t out = 0;
  for (const auto& s : {one[0], three[0], three[1], three[2]}) {
    REQUIRE(s->state() == phase::done);
    out += s->ended().output_tokens;
  }
  CHECK(out == 90);
  for (const auto& a : {w.own, w.of_name}) {
    CHECK(a->jobs() == 4);
    CHECK(a->unfinished() == 0);
    CHECK(a->prompt_tokens() == 5 + 6);
    CHECK(a->output_tokens() == out);
  }
}

TEST_CASE("job_account: counts while a job runs, and the token that ends it") {
  counted_world w;
  auto r = ask("hello", 1000);
  r.stop = {sim_text(7, 50).substr(5 * 40, 4)};
  const auto s = w.submit(r);
  REQUIRE(w.here.run([&] { return s[0]->published() >= 10; }));
  CHECK(w.own->output_tokens() >= 10);
  CHECK(w.own->unfinished() == 1);
  w.run();
  CHECK(w.own->output_tokens() == s[0]->ended().output_tokens);
  CHECK(s[0]->ended().reason == core::finish_reason::stop);
}

TEST_CASE(
    "job_account: a job that is refused, or cancelled before it was admitted, is over and used nothing") {
  counted_world w;
  auto wrong = ask("hello", 10);
  wrong.model = "other";
  const auto refused = w.submit(wrong);
  auto late = w.submit(ask("hello", 10), 2);
  late.clear();  // cancels both
  w.run();
  CHECK(refused[0]->state() == phase::refused);
  CHECK(w.own->unfinished() == 0);
  CHECK(w.own->jobs() == 0);
  CHECK(w.own->prompt_tokens() + w.own->output_tokens() == 0);
}

TEST_CASE("job_account: what jobs use is charged to its allowance as it is used") {
  counted_world w;
  w.own->allowance.set(600, w.here.now());
  const auto s = w.submit(ask(std::string(100, 'p'), 400));
  REQUIRE(w.here.run([&] { return s[0]->published() == 200; }));
  // The job uses 100 tokens a second, and the allowance grows by 10 a second.
  CHECK(w.own->allowance.left(w.here.now()) <= 600 - 100 - 180 + 5);
  CHECK(w.own->allowance.left(w.here.now()) >= 600 - 100 - 180 - 5);
  w.run();
  CHECK(s[0]->state() == phase::done);
}

}  // namespace weir::tests::job_account_test
