// Requests for models that sleep, and models that sleep to make room for others. In virtual time.
#include <set>

#include "tests/actors/demand_town.h"

namespace weir::tests::nap_demand_test {

using namespace std::chrono_literals;
using actors::model_state;
using actors::request;
using actors::sleep_level;
using core::errc;

namespace {

constexpr std::uint64_t mb = one_mb;

actors::model_spec sim(std::string name, std::string more = "") {
  return sim_model(std::move(name), std::move(more));
}

actors::service_options options(std::vector<actors::model_spec> ready, std::vector<actors::model_spec> known,
                                std::uint64_t sleep_mb) {
  return demand_options(std::move(ready), std::move(known), sleep_mb);
}

struct nap_town : demand_town {
  using demand_town::demand_town;

  std::shared_ptr<job_stream> send_to(std::string model, std::int64_t tokens = 20, std::uint64_t seed = 3) {
    auto r = ask("hello", tokens, seed);
    r.model = std::move(model);
    return send(std::move(r));
  }
  void put_to_sleep(const std::string& name, std::optional<sleep_level> level = sleep_level::host) {
    well(sleep(name, level));
  }
};

bool answered(const std::shared_ptr<job_stream>& s, std::uint64_t seed = 3) {
  return s->state() == phase::done && s->ended().reason == core::finish_reason::length &&
         text_of(*s) == sim_text(seed, s->published());
}

}  // namespace

TEST_CASE("naps on demand: a request for a model that sleeps wakes it, whatever its level") {
  for (const auto level : {sleep_level::host, sleep_level::disk}) {
    nap_town t(options({sim("a", ",mb=3000,load=2000,sleep=100/400")}, {}, 8000));
    t.put_to_sleep("a", level);
    const auto first = t.send_to("a"), second = t.send_to("a", 30, 4);
    t.wait(200ms);
    CHECK(first->state() == phase::pending);
    CHECK(first->awaited_model() == "a");
    CHECK(t.state("a") == model_state::loading);
    t.settle();
    CHECK(answered(first));
    CHECK(answered(second, 4));
    CHECK(t.status("a").wakes == 1);
    CHECK(t.status("a").loads == (level == sleep_level::host ? 1 : 2));
    CHECK(t.service->all_models().sleep_taken == (level == sleep_level::host ? 3000 * mb : 0));
  }
}

TEST_CASE("naps on demand: a request for a model that sleeps is checked at once, and wakes nothing if bad") {
  for (const auto level : {sleep_level::host, sleep_level::disk}) {
    nap_town t(options({sim("a", ",mb=3000,ctx=64")}, {}, 8000));
    t.put_to_sleep("a", level);
    const auto refused = [&](request r) {
      r.model = "a";
      const auto job = t.send(std::move(r));
      t.wait(1s);
      REQUIRE(job->state() == phase::refused);
      CHECK(t.state("a") == model_state::asleep);
      return job->refusal();
    };
    CHECK(refused(ask(std::string(100, 'x'), 5)).code == errc::prompt_too_long);
    auto hot = ask("hello", 5);
    hot.sampling.temperature = -1;
    CHECK(refused(std::move(hot)).param == "temperature");
    auto biased = ask("hello", 5);
    biased.stop_token_ids = {123'456};
    CHECK(refused(std::move(biased)).code == errc::invalid_param);
    CHECK(t.status("a").wakes == 0);
  }
}

TEST_CASE("naps on demand: lists, figures and work on texts wake nothing, and neither does load: refuse") {
  for (const auto level : {sleep_level::host, sleep_level::disk}) {
    nap_town t(options({sim("a", ",mb=3000")}, {}, 8000));
    t.put_to_sleep("a", level);
    t.service->all_models();
    t.service->figures();
    t.service->stats();
    t.service->devices();
    CHECK(t.service->ready().ready);
    t.service->models();
    CHECK(t.service->takes_model("a"));
    std::optional<std::uint32_t> count;
    auto r = ask("hello", 5);
    r.model = "a";
    t.service->count_tokens(std::move(r), t.here.get_executor(), [&](auto n) { count = n.value(); });
    std::optional<std::string> text;
    t.service->detokenize("a", {1, 2, 3}, t.here.get_executor(), [&](auto d) { text = d.value().text; });
    auto no = ask("hello", 5);
    no.model = "a";
    no.when_not_loaded = request::load::refuse;
    const auto refused = t.send(std::move(no));
    t.wait(5s);
    CHECK(count == 5);
    CHECK(text.has_value());
    REQUIRE(refused->state() == phase::refused);
    CHECK(refused->refusal().message == "a is not loaded: it is asleep");
    CHECK(t.state("a") == model_state::asleep);
    CHECK(t.status("a").wakes == 0);
  }
}

TEST_CASE("naps on demand: two models that do not fit together take turns by sleep and wake, not by loads") {
  nap_town t(options({sim("a", ",mb=6000,load=9000,sleep=100/200")},
                     {sim("b", ",mb=6000,load=9000,sleep=100/200")}, 16'000));
  t.send_to("b");  // its only load
  t.settle();
  for (int i = 0; i < 4; ++i) {
    t.wait(30s);
    const auto began = t.here.now();
    const auto job = t.send_to(i % 2 ? "b" : "a", 20, 7 + static_cast<std::uint64_t>(i));
    t.wait(600ms);
    CHECK(answered(job, 7 + static_cast<std::uint64_t>(i)));
    CHECK(t.here.now() - began < 1s);
    CHECK(t.state(i % 2 ? "a" : "b") == model_state::asleep);
  }
  CHECK(t.status("a").loads == 1);
  CHECK(t.status("b").loads == 1);
  CHECK(t.status("a").wakes == 2);
  CHECK(t.status("b").wakes == 2);
  CHECK(t.service->all_models().sleep_taken == 12'000 * mb);  // each keeps its own
}

TEST_CASE("naps on demand: what has no room on the host, or cannot sleep, is unloaded for another one") {
  for (const std::string more : {",sleep=never", ""}) {
    nap_town t(options({sim("a", ",mb=6000" + more)}, {sim("b", ",mb=6000")}, more.empty() ? 5999 : 16'000));
    t.wait(60s);
    const auto job = t.send_to("b");
    t.settle();
    CHECK(answered(job));
    CHECK(t.state("a") == model_state::absent);
    CHECK(t.service->all_models().sleep_taken == 0);
  }
}

TEST_CASE("naps on demand: of several that leave, as many sleep as the host has room for") {
  nap_town t(options({sim("a", ",mb=3000"), sim("b", ",mb=3000")}, {sim("c", ",mb=8000")}, 4000));
  t.wait(60s);
  const auto job = t.send_to("c");
  t.settle();
  CHECK(answered(job));
  const bool a_sleeps = t.state("a") == model_state::asleep;
  CHECK(t.state(a_sleeps ? "a" : "b") == model_state::asleep);
  CHECK(t.state(a_sleeps ? "b" : "a") == model_state::absent);
  CHECK(t.service->all_models().sleep_taken == 3000 * mb);
}

TEST_CASE("naps on demand: a model whose sleep fails is unloaded for another one, and the log says so") {
  for (const std::string kind : {"sleep", "sleep_room"}) {
    nap_town t(options({sim("a", ",mb=6000,fault=" + kind + "@1")}, {sim("b", ",mb=6000")}, 16'000));
    t.wait(60s);
    const auto job = t.send_to("b");
    t.settle();
    CHECK(answered(job));
    CHECK(t.state("a") == (kind == "sleep" ? model_state::failed : model_state::absent));
    CHECK(std::ranges::any_of(*t.lines, [](const std::string& line) {
      return line.find("a could not be put to sleep, and is unloaded") != std::string::npos;
    }));
    CHECK(t.service->all_models().sleep_taken == 0);
    CHECK(t.service->all_models().devices.at(0).models == 6000 * mb);
  }
}

TEST_CASE("naps on demand: what went to sleep for a load that fails is awake again") {
  nap_town t(options({sim("a", ",mb=6000")}, {sim("b", ",mb=6000,load=1000,fault=load")}, 16'000));
  t.wait(60s);
  const auto no = t.send_to("b");
  t.settle();
  REQUIRE(no->state() == phase::refused);
  CHECK(no->refusal().message.find("a is awake again") != std::string::npos);
  CHECK(t.state("a") == model_state::ready);
  CHECK(t.status("a").loads == 1);
  CHECK(t.status("a").wakes == 1);
  const auto job = t.send_to("a");
  t.settle();
  CHECK(answered(job));
}

TEST_CASE("naps on demand: a wake that breaks the model fails its requests, and a later one loads it anew") {
  nap_town t(options({sim("a", ",mb=3000,load=1000,fault=wake@1")}, {}, 8000));
  t.put_to_sleep("a");
  const auto no = t.send_to("a");
  t.settle();
  REQUIRE(no->state() == phase::refused);
  CHECK(no->refusal().code == errc::unavailable);
  CHECK(no->refusal().message.find("fault=wake@1") != std::string::npos);
  CHECK(t.state("a") == model_state::failed);
  CHECK(t.service->all_models().sleep_taken == 0);
  CHECK(t.service->all_models().devices.at(0).models == 0);
  t.wait(11s);
  const auto later = t.send_to("a");
  t.settle();
  CHECK(answered(later));
  CHECK(t.status("a").loads == 2);
}

TEST_CASE("naps on demand: where the device is full after all, requests are refused, and it sleeps on") {
  nap_town t(options({sim("a", ",mb=3000,fault=wake_room@1")}, {}, 8000));
  t.put_to_sleep("a");
  const auto no = t.send_to("a");
  t.settle();
  REQUIRE(no->state() == phase::refused);
  CHECK(no->refusal().code == errc::does_not_fit);
  CHECK(t.state("a") == model_state::asleep);
  const auto soon = t.send_to("a");
  t.settle();
  CHECK(soon->state() == phase::refused);
  t.wait(11s);
  const auto later = t.send_to("a");
  t.settle();
  CHECK(answered(later));
}

TEST_CASE("naps on demand: busy models make way for a wake, as for a load") {
  nap_town t(options({sim("a", ",mb=6000")}, {sim("b", ",mb=6000")}, 16'000));
  t.put_to_sleep("a");
  t.send_to("b", 5000);
  t.wait(1s);
  const auto a = t.send_to("a");
  t.wait(1s);
  CHECK(a->state() == phase::pending);
  t.settle();
  CHECK(answered(a));
  CHECK(answered(t.all.front()));
  CHECK(t.state("b") == model_state::asleep);
}

TEST_CASE("naps on demand: a host with as many models as it may have lets one sleep for another") {
  auto o = options({sim("a", ",mb=10")}, {sim("b", ",mb=10")}, 1000);
  o.owner.models = 1;
  nap_town t(std::move(o));
  t.wait(60s);
  const auto b = t.send_to("b");
  t.settle();
  CHECK(answered(b));
  CHECK(t.state("a") == model_state::asleep);
  t.wait(60s);
  const auto a = t.send_to("a");
  t.settle();
  CHECK(answered(a));
  CHECK(t.state("b") == model_state::asleep);
}

TEST_CASE("naps on demand: a model without jobs goes to sleep after its time, or is unloaded") {
  auto a = sim("a", ",mb=100"), b = sim("b", ",mb=100"), c = sim("c", ",mb=100");
  a.idle_sleep = 20s;
  b.idle_sleep = b.idle_unload = 20s;
  c.idle_sleep = 20s;
  c.pinned = true;
  nap_town t(options({a, b, c}, {}, 1000));
  t.wait(15s);
  CHECK(t.state("a") == model_state::ready);
  t.wait(8s);
  CHECK(t.state("a") == model_state::asleep);
  CHECK(t.status("a").level == sleep_level::host);
  CHECK(t.state("b") == model_state::absent);
  CHECK(t.state("c") == model_state::ready);
  const auto job = t.send_to("a");
  t.settle();
  CHECK(answered(job));
}

}  // namespace weir::tests::nap_demand_test
