// A model that runs in several places, in virtual time.
#include "tests/actors/sim_town.h"

namespace weir::tests::places_test {

using namespace std::chrono_literals;

namespace {

// A service of simulated models on `hosts` devices.
struct town_of_hosts : sim_town {
  town_of_hosts(std::size_t hosts, std::uint32_t copies, const std::vector<std::string>& models = {"m"},
                std::uint32_t batch = 4, std::uint32_t queue = 6)
      : sim_town(5, options(hosts, copies, models, batch, queue)) {}
  static actors::service_options options(std::size_t hosts, std::uint32_t copies,
                                         const std::vector<std::string>& models, std::uint32_t batch,
                                         std::uint32_t queue) {
    actors::service_options o;
    for (const auto& name : models) o.models.push_back({name, "sim:rate=1000,prefill=100000"});
    o.devices.assign(hosts, "sim");
    o.copies = copies;
    o.owner.max_batch = batch;
    o.owner.queue = queue;
    return o;
  }
  std::shared_ptr<job_stream> submit(const std::string& prompt, std::int64_t tokens,
                                     const std::string& model = {}, std::uint64_t seed = 3) {
    auto r = ask(prompt, tokens, seed);
    r.model = model;
    return send(std::move(r));
  }
};

}  // namespace

TEST_CASE("places: a model with copies runs as many jobs at a time as all of them, and is one model") {
  town_of_hosts t(3, 3);
  REQUIRE(t.service->models().size() == 1);
  CHECK(t.service->models().front().device == "sim,sim,sim");
  for (int i = 0; i < 12; ++i) t.submit("prompt " + std::to_string(i), 200);
  t.here.run([] { return false; }, 100ms);
  CHECK(t.service->stats().engine.decoding == 12);
  CHECK(t.service->ready().ready);
  t.settle();
  CHECK(t.figures("m").engine.tokens == 12 * 200);
  CHECK(t.figures("m").ended[static_cast<std::size_t>(core::finish_reason::length)] == 12);
}

TEST_CASE("places: a job's text is its own wherever it runs") {
  town_of_hosts t(4, 4);
  std::vector<std::shared_ptr<job_stream>> jobs;
  for (std::uint64_t seed = 0; seed < 12; ++seed) jobs.push_back(t.submit("what is it", 40, {}, seed));
  t.settle();
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::string text;
    jobs[seed]->text_of(0, jobs[seed]->published(), text);
    CHECK(text == sim_text(seed, 40));
  }
}

TEST_CASE("places: a job is refused only where no place has room, and a place that is free again takes one") {
  town_of_hosts t(2, 2, {"m"}, 1, 0);
  const auto a = t.submit("a", 100), b = t.submit("b", 100), c = t.submit("c", 100);
  t.here.run([] { return false; }, 20ms);
  CHECK(a->state() == phase::running);
  CHECK(b->state() == phase::running);
  REQUIRE(c->state() == phase::refused);
  CHECK(c->refusal().code == core::errc::overloaded);
  t.settle();
  const auto d = t.submit("d", 5), e = t.submit("e", 5);
  t.settle();
  CHECK(d->state() == phase::done);
  CHECK(e->state() == phase::done);
}

TEST_CASE("places: models without copies are spread over the devices, and each runs its own jobs") {
  town_of_hosts t(2, 1, {"a", "b", "c"});
  REQUIRE(t.service->models().size() == 3);
  for (const char* model : {"a", "b", "c"})
    for (int i = 0; i < 4; ++i) t.submit("x" + std::to_string(i), 50, model);
  t.settle();
  for (const char* model : {"a", "b", "c"}) CHECK(t.figures(model).engine.tokens == 4 * 50);
  CHECK(t.service->stats().engine.tokens == 600);
}

TEST_CASE("places: live jobs of every place are listed with their model and can be cancelled") {
  town_of_hosts t(2, 2);
  for (int i = 0; i < 8; ++i) t.submit("p" + std::to_string(i), 100'000);
  t.here.run([] { return false; }, 200ms);
  std::vector<actors::job_view> seen;
  t.service->list_jobs({}, t.here.get_executor(), [&](auto v) { seen = std::move(v); });
  t.here.run([] { return false; }, 50ms);
  REQUIRE(seen.size() == 8);
  for (const auto& v : seen) {
    CHECK(v.model == "m");
    CHECK(v.state == "decoding");
    CHECK(v.output_tokens > 0);
  }
  t.service->cancel_all();
  t.settle();
  CHECK(t.service->stats().engine.pages_used == 0);
}

}  // namespace weir::tests::places_test
