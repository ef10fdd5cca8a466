// Models that are loaded, unloaded and swapped while a service runs, in virtual time.
#include "tests/actors/order_town.h"

namespace weir::tests::model_orders_test {

using namespace std::chrono_literals;
using actors::model_state;

namespace {

constexpr const char* quick = "sim:rate=1000,prefill=100000";

// A service on simulated devices whose models change.
struct town_of_models : order_town {
  explicit town_of_models(std::size_t hosts = 1, const std::vector<std::string>& models = {"a"},
                          std::uint64_t seed = 11)
      : order_town(seed, options(hosts, models)) {}
  explicit town_of_models(actors::service_options o) : order_town(11, std::move(o)) {}
  static actors::service_options options(std::size_t hosts, const std::vector<std::string>& models) {
    actors::service_options o;
    for (const auto& name : models) o.models.push_back({name, quick});
    o.known_models.push_back({"shelved", std::string(quick) + ",load=500"});
    o.devices.assign(hosts, "sim");
    o.owner.max_batch = 4;
    o.owner.queue = 8;
    o.owner.audit = true;
    return o;
  }

  order_ptr load(const std::string& name, const std::string& source = quick,
                 std::vector<std::string> devices = {}) {
    return order_town::load(name, source, std::move(devices));
  }
  order_ptr swap(std::vector<std::string> out, const std::string& in, const std::string& source = quick,
                 std::optional<std::chrono::nanoseconds> drain = {}) {
    return order_town::swap(std::move(out), in, source, drain);
  }
};

// A device of 10,000 MB, on which the model `a` takes 6,000.
actors::service_options with_memory() {
  auto o = town_of_models::options(1, {"a"});
  o.models[0].source += ",mb=6000";
  o.measured.push_back(sim_device(10'000));
  return o;
}

// The error with which an order was refused, or failed.
core::error fault(const std::shared_ptr<town_of_models::order>& o) {
  if (o->begun && !*o->begun) return o->begun->error().fault;
  REQUIRE(o->done.has_value());
  REQUIRE(o->done->has_error());
  return o->done->error().fault;
}

}  // namespace

TEST_CASE("models: one that is loaded later serves, and the jobs of others run on as if it were not there") {
  town_of_models alone, t;
  const auto calm = alone.ask_of("a", 300);
  const auto beside = t.ask_of("a", 300);
  t.pass(50ms);
  const auto o = t.load("b", std::string(quick) + ",load=100,ctx=4096");
  t.pass(20ms);
  REQUIRE(o->begun.has_value());
  CHECK((*o->begun)->state == model_state::loading);
  CHECK(t.state("b") == model_state::loading);
  CHECK(t.service->ready().ready);
  const auto early = t.ask_of("b", 5);
  t.pass(1ms);
  REQUIRE(early->state() == phase::refused);
  CHECK(early->refusal().code == core::errc::unavailable);
  CHECK(early->refusal().retry_after_ms > 0);
  t.carry_out(o);
  REQUIRE(o->done->has_value());
  CHECK((*o->done)->state == model_state::ready);
  CHECK((*o->done)->context == 4096);
  const auto later = t.ask_of("b", 50, 9);
  t.settle();
  alone.settle();
  CHECK(text_of(*later) == sim_text(9, 50));
  CHECK(text_of(*beside) == sim_text(3, 300));
  CHECK(beside->sampled_at_us(299) == calm->sampled_at_us(299));
  CHECK(t.service->models().size() == 2);
}

TEST_CASE("models: an unload lets jobs run to their ends, refuses new ones, and gives everything back") {
  town_of_models t(1, {"a", "b"});
  const auto running = t.ask_of("b", 200);
  t.pass(20ms);
  const auto o = t.unload("b");
  t.pass(20ms);
  CHECK(t.state("b") == model_state::draining);
  const auto late = t.ask_of("b", 5);
  t.pass(1ms);
  REQUIRE(late->state() == phase::refused);
  CHECK(late->refusal().code == core::errc::unavailable);
  t.carry_out(o);
  REQUIRE(o->done->has_value());
  CHECK(text_of(*running) == sim_text(3, 200));
  CHECK(t.state("b") == model_state::absent);
  const auto gone = t.ask_of("b", 5);
  t.pass(1ms);
  REQUIRE(gone->state() == phase::refused);
  CHECK(gone->refusal().message == "b is not loaded");
  CHECK(t.service->models().size() == 1);
  t.settle();
  CHECK(t.service->stats().engine.tokens == 200);  // of an engine that is gone
  CHECK(t.service->stats().ended == 1);

  t.carry_out(t.load("b", ""));  // from where it was
  t.ask_of("b", 30);
  t.settle();
  CHECK(t.figures("b").engine.tokens == 230);
  CHECK(t.figures("b").ended[static_cast<std::size_t>(core::finish_reason::length)] == 2);
}

TEST_CASE("models: jobs that an unload does not wait for end with an error") {
  town_of_models t(1, {"a", "b"});
  const auto slow = t.ask_of("b", 100'000);
  t.pass(50ms);
  const auto o = t.unload("b", 100ms);
  t.carry_out(o);
  REQUIRE(o->done->has_value());
  t.pass(10ms);
  REQUIRE(slow->state() == phase::done);
  CHECK(slow->ended().reason == core::finish_reason::error);
  CHECK(slow->ended().fault->code == core::errc::unavailable);
  CHECK(slow->published() > 100);
}

TEST_CASE("models: a swap waits for the jobs of the model that goes, and aborts none") {
  town_of_models t;
  std::vector<std::shared_ptr<job_stream>> jobs;
  for (std::uint64_t seed = 0; seed < 6; ++seed) jobs.push_back(t.ask_of("a", 100, seed));
  t.pass(20ms);
  const auto o = t.swap({"a"}, "b");
  t.carry_out(o);
  REQUIRE(o->done->has_value());
  for (std::uint64_t seed = 0; seed < 6; ++seed) CHECK(text_of(*jobs[seed]) == sim_text(seed, 100));
  CHECK(t.state("a") == model_state::absent);
  CHECK(t.state("b") == model_state::ready);
  const auto now = t.ask_of("b", 10);
  t.settle();
  CHECK(now->state() == phase::done);
}

TEST_CASE("models: a swap whose jobs take too long changes nothing") {
  town_of_models t;
  const auto slow = t.ask_of("a", 2000);
  t.pass(20ms);
  const auto o = t.swap({"a"}, "b", quick, 100ms);
  t.carry_out(o);
  CHECK(fault(o).code == core::errc::busy);
  CHECK(fault(o).message == "1 jobs still run after 0 s; nothing was changed");
  CHECK(t.state("a") == model_state::ready);
  CHECK(t.service->all_models().models.size() == 2);  // no b
  const auto next = t.ask_of("a", 10);
  t.settle();
  CHECK(next->state() == phase::done);
  CHECK(text_of(*slow) == sim_text(3, 2000));
}

TEST_CASE("models: where the load of a swap fails, what went is back") {
  town_of_models t(1, {"a", "c"});
  const auto o = t.swap({"a", "c"}, "b", std::string(quick) + ",load=50,fault=load");
  t.carry_out(o);
  CHECK(fault(o).message ==
        "the simulated load failed, as fault=load asks; a is loaded again; c is loaded again");
  CHECK(t.state("a") == model_state::ready);
  CHECK(t.state("b") == model_state::failed);
  CHECK(t.status("b").reason == "the simulated load failed, as fault=load asks");
  const auto next = t.ask_of("c", 10);
  t.settle();
  CHECK(next->state() == phase::done);
  CHECK(t.service->ready().ready);
}

TEST_CASE("models: a model takes the place of itself, from another source") {
  town_of_models t;
  t.carry_out(t.swap({"a"}, "a", std::string(quick) + ",ctx=2048"));
  CHECK(t.status("a").context == 2048);
  t.carry_out(t.swap({"a"}, "a", std::string(quick) + ",fault=load"));
  CHECK(t.status("a").context == 2048);
  CHECK(t.state("a") == model_state::ready);
}

TEST_CASE("models: one order is carried out at a time, and another is told when to come again") {
  town_of_models t;
  const auto first = t.load("b", std::string(quick) + ",load=3000");
  t.pass(100ms);
  for (const auto& o : {t.load("c"), t.unload("a"), t.swap({"a"}, "c")}) {
    t.pass(1ms);
    CHECK(fault(o).code == core::errc::busy);
    CHECK(fault(o).message == "another order for models is being carried out: b is being loaded");
    CHECK(fault(o).retry_after_ms >= 1000);
  }
  t.carry_out(first);
  REQUIRE(first->done->has_value());
  t.carry_out(t.load("c"));
  CHECK(t.state("c") == model_state::ready);
}

TEST_CASE("models: orders that cannot be met say why, and change nothing") {
  town_of_models t(2, {"a"});
  const auto refused = [&](const std::shared_ptr<town_of_models::order>& o) {
    t.carry_out(o);
    return fault(o);
  };
  CHECK(refused(t.load("a")).code == core::errc::already_there);
  CHECK(refused(t.load("a")).message == "a model is called 'a' already, and it is ready");
  CHECK(refused(t.load("nobody", "")).code == core::errc::model_not_found);
  CHECK(refused(t.unload("nobody")).code == core::errc::model_not_found);
  CHECK(refused(t.unload("shelved")).message == "shelved is not loaded: it is absent");
  CHECK(refused(t.swap({"nobody"}, "b")).code == core::errc::model_not_found);
  CHECK(refused(t.load("b", quick, {"cuda:9"})).param == "device");
  CHECK(refused(t.load("b", quick, {"sim", "sim", "sim"})).param == "device");
  CHECK(refused(t.load("b", "sim:rat=1")).message.find("no key «rat»") != std::string::npos);
  CHECK(t.state("a") == model_state::ready);
  CHECK(t.service->all_models().models.size() == 2);  // no b
  t.carry_out(t.load("b", std::string(quick) + ",fault=load"));
  CHECK(t.state("b") == model_state::failed);
  t.carry_out(t.unload("b", {}, true));
  CHECK(t.service->all_models().models.size() == 2);
}

TEST_CASE("models: a refused order with another source leaves the model's own") {
  town_of_models t;
  const auto refused = t.load("shelved", "sim:rat=1");
  t.carry_out(refused);
  CHECK(fault(refused).message.find("no key «rat»") != std::string::npos);
  CHECK(t.status("shelved").source == std::string(quick) + ",load=500");
  t.carry_out(t.load("shelved", ""));
  CHECK(t.state("shelved") == model_state::ready);
}

TEST_CASE("models: a model on two devices is one model, and all of it goes") {
  town_of_models t(2, {"a"});
  t.carry_out(t.load("b", quick, {"sim", "sim"}));
  CHECK(t.status("b").devices == std::vector<std::string>{"sim", "sim"});
  for (int i = 0; i < 8; ++i) t.ask_of("b", 100, static_cast<std::uint64_t>(i));
  t.pass(80ms);
  CHECK(t.status("b").running == 8);
  t.carry_out(t.unload("b"));
  t.settle();
  CHECK(t.service->stats().engine.tokens == 800);
}

TEST_CASE(
    "models: a name that is known from the start is loaded by it, and an empty name finds the only model") {
  town_of_models t;
  const auto o = t.load("shelved", "");
  t.carry_out(o);
  REQUIRE(o->done->has_value());
  CHECK(t.status("shelved").source == std::string(quick) + ",load=500");
  const auto unclear = t.ask_of("", 5);
  t.pass(1ms);
  REQUIRE(unclear->state() == phase::refused);
  CHECK(unclear->refusal().message == "model is missing, and several are served: a shelved");
  t.carry_out(t.unload("shelved"));
  const auto clear = t.ask_of("", 5);
  t.settle();
  CHECK(clear->state() == phase::done);
}

TEST_CASE("models: what does not fit is refused at once with the numbers, and fits once another has gone") {
  town_of_models t(with_memory());
  CHECK(t.status("a").predicted.weights == std::uint64_t{6000} << 20);
  const auto running = t.ask_of("a", 100);
  const auto too_big = t.load("b", std::string(quick) + ",mb=5000");
  t.carry_out(too_big);
  CHECK(fault(too_big).code == core::errc::does_not_fit);
  CHECK(too_big->begun->error().plan.find("\"fits\":false") != std::string::npos);
  CHECK(t.service->all_models().models.size() == 2);  // no b
  const auto never = t.swap({"a"}, "b", std::string(quick) + ",mb=11000");
  t.carry_out(never);
  CHECK(fault(never).code == core::errc::does_not_fit);
  CHECK(t.state("a") == model_state::ready);
  t.carry_out(t.swap({"a"}, "b", std::string(quick) + ",mb=9000"));
  CHECK(t.state("b") == model_state::ready);
  CHECK(t.service->all_models().devices.at(0).free == std::uint64_t{1000} << 20);
  t.settle();
  CHECK(text_of(*running) == sim_text(3, 100));
  // The load of what comes fails: what went is back, and so is the account.
  t.carry_out(t.swap({"b"}, "a", std::string(quick) + ",mb=10000,fault=load"));
  CHECK(t.state("b") == model_state::ready);
  CHECK(t.service->all_models().devices.at(0).models == std::uint64_t{9000} << 20);
  t.carry_out(t.unload("b"));
  CHECK(t.service->all_models().devices.at(0).models == 0);
}

TEST_CASE("models: a plan says what a load would take, and changes nothing") {
  town_of_models t(with_memory());
  const auto plan = [&](const std::string& source, std::vector<std::string> out) {
    std::optional<boost::system::result<std::string, actors::order_error>> got;
    t.service->plan_model({{"b", source}, {}, {}}, std::move(out), t.here.get_executor(),
                          [&](auto r) { got = std::move(r); });
    REQUIRE(t.here.run([&] { return got.has_value(); }));
    return got->has_value() ? got->value() : got->error().fault.message;
  };
  const std::string big = std::string(quick) + ",mb=5000";
  CHECK(plan(big, {}).find("\"fits\":false") != std::string::npos);
  CHECK(plan(big, {"a"}).find("\"fits\":true") != std::string::npos);
  CHECK(plan("", {}) == "no model is called 'b'");
  CHECK(t.service->all_models().models.size() == 2);
}

TEST_CASE("models: those who follow hear of each change") {
  town_of_models t;
  int heard = 0;
  auto follower = t.service->follow_models(t.here.get_executor(), [&] { ++heard; });
  t.carry_out(t.load("b", std::string(quick) + ",load=10"));
  t.pass(1ms);
  CHECK(heard == 2);  // loading, ready
  follower.reset();
  t.carry_out(t.unload("b"));
  t.pass(1ms);
  CHECK(heard == 2);
}

}  // namespace weir::tests::model_orders_test
