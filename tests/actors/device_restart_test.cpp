// Jobs whose device fails and is started again, in virtual time: they go on, whenever it fails, and cancels
// and deadlines end them as ever.
#include "tests/actors/sim_town.h"

namespace weir::tests::device_restart_test {

using namespace std::chrono_literals;

namespace {

std::uint64_t ended_by(const sim_town& town, core::finish_reason why) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(town.all, [&](const auto& s) { return s->ended().reason == why; }));
}

}  // namespace

TEST_CASE("jobs of a device that fails go on in both models, or end by their cancel or deadline") {
  std::uint64_t whole = 0, cancelled = 0, late = 0, continued = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const std::uint64_t fails_at = 70 + random() % 30;
    actors::service_options o;
    o.models.push_back({"faulty", fmt::format("sim:rate=1000,fault=device@{}", fails_at)});
    o.models.push_back({"other", "sim:rate=700"});
    o.owner.models = 2;
    o.owner.max_batch = 8;
    o.owner.kv_tokens = 4096;
    sim_town town(seed, std::move(o));
    for (std::uint64_t n = 0; n < 24; ++n) {
      auto r = ask("some text of a prompt", static_cast<std::int64_t>(10 + random() % 30), n);
      r.model = n % 3 ? "faulty" : "other";
      if (n % 5 == 1) r.deadline = std::chrono::milliseconds(1 + random() % 60);
      if (n % 4 == 2) r.stop = {"w11", "w42"};
      const auto job = town.send(std::move(r));
      if (n % 6 == 5) town.here.after(std::chrono::milliseconds(random() % 60), [job] { job->cancel(); });
      town.here.run([] { return false; }, std::chrono::milliseconds(random() % 7));
    }
    town.settle();
    for (const auto& s : town.all) {
      REQUIRE(s->state() == phase::done);
      CHECK(s->ended().reason != core::finish_reason::error);
      CHECK_FALSE(s->ended().fault);
    }
    for (std::uint64_t n = 0; n < town.all.size(); ++n) {
      const std::string text = text_of(*town.all[n]);
      CHECK(sim_text(n, 40).starts_with(text));
    }
    whole += ended_by(town, core::finish_reason::length) + ended_by(town, core::finish_reason::stop);
    cancelled += ended_by(town, core::finish_reason::cancel);
    late += ended_by(town, core::finish_reason::timeout);
    const auto now = town.service->stats();
    continued += now.engine.continued;
    CHECK(now.engine.pages_used == 0);
    CHECK(now.engine.queued + now.engine.decoding + now.engine.prefilling + now.engine.paused == 0);
    CHECK(town.service->ready().ready);
  }
  CHECK(whole > 300);
  CHECK(cancelled > 20);
  CHECK(late > 20);
  CHECK(continued > 50);
}

TEST_CASE("a second fault within a minute ends the jobs that went on behind the first, with its error") {
  actors::service_options o;
  o.models.push_back({"faulty", "sim:rate=1000,fault=device@50"});
  o.models.push_back({"other", "sim:rate=100"});
  o.owner.models = 2;
  sim_town town(7, std::move(o));
  for (const char* model : {"faulty", "other"}) {
    for (std::uint64_t n = 0; n < 3; ++n) {
      auto r = ask("x", 1000, n);
      r.model = model;
      town.send(std::move(r));
    }
  }
  town.settle();
  for (const auto& s : town.all) {
    REQUIRE(s->state() == phase::done);
    CHECK(s->ended().reason == core::finish_reason::error);
    REQUIRE(s->ended().fault);
    CHECK_THAT(s->ended().fault->message, Catch::Contains("fault=device@50"));
  }
  CHECK(town.all[0]->published() > 50);  // of both devices
  CHECK(text_of(*town.all[0]) == sim_text(0, town.all[0]->published()));
  CHECK(town.service->stats().engine.continued == 6);
  CHECK_FALSE(town.service->ready().ready);
}

TEST_CASE("a job goes on once: it ends with the next fault, however late, and younger jobs go on") {
  actors::service_options o;
  o.models.push_back({"sim", "sim:rate=0.5,fault=device@50"});  // a fault in 100 s
  sim_town town(9, std::move(o));
  const auto old = town.send(ask("x", 1000, 1));
  REQUIRE(town.here.run([&] { return old->published() > 60; }));
  const auto young = town.send(ask("y", 70, 2));
  town.settle();
  CHECK(old->ended().reason == core::finish_reason::error);
  REQUIRE(old->ended().fault);
  CHECK_THAT(old->ended().fault->message, Catch::Contains("fault=device@50"));
  CHECK(text_of(*old) == sim_text(1, old->published()));
  CHECK(young->ended().reason == core::finish_reason::length);
  CHECK(text_of(*young) == sim_text(2, 70));
  CHECK(town.service->stats().engine.continued == 2);
  CHECK(town.service->ready().ready);
}

TEST_CASE("a paused job of a device that fails stays paused, and goes on when it is resumed") {
  actors::service_options o;
  o.models.push_back({"sim", "sim:rate=1000,fault=device@60"});
  sim_town town(8, std::move(o));
  auto r = ask("x", 30, 1);
  r.may_pause = true;
  const auto rests = town.send(std::move(r));
  REQUIRE(town.here.run([&] { return rests->published() >= 10; }));
  rests->pause(town.here.now() + 10h);
  town.here.run([] { return false; }, 100ms);
  const auto had = rests->published();
  const auto runs = town.send(ask("y", 70, 2));  // the device fails meanwhile
  REQUIRE(town.here.run([&] { return runs->state() == phase::done; }));
  CHECK(text_of(*runs) == sim_text(2, 70));
  CHECK(rests->published() == had);
  CHECK(rests->state() == phase::running);
  town.here.run([] { return false; }, 1s);
  CHECK(town.service->stats().engine.continued == 2);
  CHECK(town.service->stats().engine.paused == 1);
  rests->resume();
  town.settle();
  CHECK(text_of(*rests) == sim_text(1, 30));
  CHECK(rests->ended().reason == core::finish_reason::length);
}

}  // namespace weir::tests::device_restart_test
