#include "core/model/sim.h"

#include <catch2/catch.hpp>

#include "tests/support/engine_rig.h"

namespace weir::tests::sim_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

std::string message_of(const char* text) {
  const auto spec = parse_sim_spec(text);
  REQUIRE_FALSE(spec.has_value());
  CHECK(spec.error().code == errc::invalid_param);
  CHECK(spec.error().param == "device");
  return spec.error().message;
}

// The times between the tokens of a job.
std::vector<duration> gaps(const recording_sink& s) {
  std::vector<duration> out;
  for (std::size_t i = 1; i < s.tokens.size(); ++i) out.push_back(s.tokens[i].at - s.tokens[i - 1].at);
  return out;
}

bool near(duration a, duration b) { return std::chrono::abs(a - b) < 50us; }

}  // namespace

TEST_CASE("a sim's text is splitmix64 of seed and index") {
  // Of the reference implementation: splitmix64 seeded with 1234567 gives 6457827717110365317 first.
  CHECK(sim_token(0, 1234567) == 317);
  // And seeded with 0 gives 0xe220a8397b1dcdaf first.
  CHECK(sim_token(0, 0) == static_cast<token_id>(0xe220a8397b1dcdaf % 1000));
  CHECK(sim_token(3, 5) == sim_token(0, 0) * 0 + sim_token(3 + (1ULL << 32), 5));
  CHECK(sim_token(3, 5) != sim_token(4, 5));
}

TEST_CASE("a sim's spec: every key, and defaults for what is not there") {
  const auto none = parse_sim_spec("");
  REQUIRE(none.has_value());
  CHECK(none->rate == 50);
  CHECK(none->prefill == 20000);
  CHECK(none->context == 131072);
  CHECK_FALSE(none->staggered);
  const auto all = parse_sim_spec(
      "rate=12.5,arrive=staggered,prefill=1000,burst=4,stall=1000/200,fault=device@7,ctx=2048");
  REQUIRE(all.has_value());
  CHECK(all->rate == 12.5);
  CHECK(all->staggered);
  CHECK(all->prefill == 1000);
  CHECK(all->burst == 4);
  CHECK(all->stall_every == 1000ms);
  CHECK(all->stall_for == 200ms);
  CHECK(all->device_fault == 7);
  CHECK(all->sampler_fault == 0);
  CHECK(all->context == 2048);
  CHECK(parse_sim_spec("rate=0")->rate == 50);
  CHECK(parse_sim_spec("fault=sampler@3")->sampler_fault == 3);
  CHECK(parse_sim_spec("fault=sampler@3")->last_sampler_fault == 3);
  CHECK(parse_sim_spec("fault=sampler@3-9")->last_sampler_fault == 9);
}

TEST_CASE("a sim's spec that is wrong is refused naming the key") {
  for (const char* text : {"rate=fast", "rate=-1", "rate=nan", "rate=inf", "rate=1e9", "rate=", "rate=5x"}) {
    INFO(text);
    CHECK(message_of(text).find("rate") != std::string::npos);
  }
  for (const char* text : {"stall=5", "stall=5/5", "stall=0/0", "stall=9/", "stall=/3", "stall=9/3/1"}) {
    INFO(text);
    CHECK(message_of(text).find("stall=") != std::string::npos);
  }
  for (const char* text : {"fault=none", "fault=sampler", "fault=sampler@0", "fault=disk@4",
                           "fault=device@-1", "fault=device@1-2", "fault=wake@1-2", "fault=sleep",
                           "fault=sampler@3-2", "fault=sampler@3-", "fault=sampler@-3"}) {
    INFO(text);
    CHECK(message_of(text).find("fault=") != std::string::npos);
  }
  for (const char* text : {"step=", "step=1/2", "step=0/1/1", "step=1/2/3/4", "step=1//3", "step=-1/2/3",
                           "step=1/2/nan", "step=2e6/1/1"}) {
    INFO(text);
    CHECK(message_of(text).find("step=") != std::string::npos);
  }
  for (const char* text : {"sleep=", "sleep=5", "sleep=5/", "sleep=/5", "sleep=1/600001", "sleep=-1/2"}) {
    INFO(text);
    CHECK(message_of(text).find("sleep=") != std::string::npos);
  }
  CHECK(message_of("arrive=late").find("arrive") != std::string::npos);
  CHECK(message_of("burst=0").find("burst") != std::string::npos);
  CHECK(message_of("burst=1.5").find("burst") != std::string::npos);
  CHECK(message_of("ctx=1").find("ctx") != std::string::npos);
  CHECK(message_of("prefill=0").find("prefill") != std::string::npos);
  CHECK(message_of("speed=4").find("speed") != std::string::npos);
  CHECK(message_of("rate").find("rate") != std::string::npos);
  CHECK(message_of("rate=5,,burst=2").find("KEY=VALUE") != std::string::npos);
}

TEST_CASE("a sim sleeps and wakes, and computes nothing meanwhile") {
  const auto spec = parse_sim_spec("sleep=200/300,mb=70,fault=sleep_room@1,fault=wake_room@1,fault=wake@3");
  REQUIRE(spec.has_value());
  CHECK(spec->sleep == 200ms);
  CHECK(spec->wake == 300ms);
  const auto m = make_sim_model(*spec);
  CHECK(m->sleep_bytes() == std::uint64_t{70} << 20);
  CHECK(m->sleep().error().code == errc::does_not_fit);
  CHECK(m->forward({}).has_value());  // awake as before
  CHECK(m->sleep().has_value());
  CHECK(m->forward({}).error().code == errc::internal);
  CHECK(m->wake().error().code == errc::does_not_fit);
  CHECK(m->forward({}).error().code == errc::internal);  // it sleeps on
  CHECK(m->wake().has_value());
  CHECK(m->forward({}).has_value());
  CHECK(m->sleep().has_value());
  CHECK(m->wake().error().code == errc::internal);
  const auto never = make_sim_model(*parse_sim_spec("sleep=never"));
  CHECK_FALSE(never->sleep_bytes().has_value());
  CHECK(never->sleep().error().code == errc::not_supported);
}

TEST_CASE("sequences that arrive together share each step, at the rate asked") {
  engine_rig rig(sim_spec{.rate = 100});
  auto a = rig.submit(rig.job(1, 20));
  rig.clock.set(rig.step().wait_until);
  rig.step();
  rig.clock.advance(4ms);
  auto b = rig.submit(rig.job(2, 10));
  rig.run();
  for (const auto g : gaps(*a)) CHECK(near(g, 10ms));
  for (const auto g : gaps(*b)) CHECK(near(g, 10ms));
  CHECK(std::any_of(a->tokens.begin(), a->tokens.end(), [&](auto& t) { return t.at == b->tokens[0].at; }));
}

TEST_CASE("with step costs a forward takes longer the more rows it has, and nothing waits for a moment") {
  const auto spec = parse_sim_spec("step=3400/22.5/34");
  REQUIRE(spec.has_value());
  CHECK(spec->step == 3400us);
  CHECK(spec->step_prompt_row == 22500ns);
  CHECK(spec->step_stream_row == 34us);
  CHECK(parse_sim_spec("step=1/0/0")->step == 1us);
  std::vector<duration> spent;
  auto config = small_config();
  config.prefill_rows = 512;
  engine_rig rig(make_sim_model(*spec, [&](duration d) { spent.push_back(d); }), letters(sim_vocab_size),
                 config);
  CHECK_FALSE(rig.engine->info().paced);
  rig.submit(rig.job(1, 3, 100));
  rig.step();
  rig.submit(rig.job(2, 3, 50));
  rig.run();
  REQUIRE(spent.size() == 4);
  CHECK(spent[0] == 3400us + 100 * 22500ns);
  CHECK(spent[1] == 3400us + 34us + 50 * 22500ns);
  CHECK(spent[2] == 3400us + 2 * 34us);
  CHECK(spent[3] == 3400us + 34us);
}

TEST_CASE("staggered sequences keep the rate, each at moments of its own") {
  engine_rig rig(sim_spec{.rate = 100, .staggered = true});
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (std::uint64_t n = 0; n < 10; ++n) sinks.push_back(rig.submit(rig.job(n, 20)));
  rig.run();
  std::vector<duration> phases;
  for (const auto& s : sinks) {
    for (const auto g : gaps(*s)) CHECK(near(g, 10ms));
    phases.push_back(s->tokens[5].at.time_since_epoch() % 10ms);
  }
  std::sort(phases.begin(), phases.end());
  for (std::size_t i = 1; i < phases.size(); ++i) {
    CHECK(phases[i] - phases[i - 1] > 300us);
    CHECK(phases[i] - phases[i - 1] < 2500us);
  }
}

TEST_CASE("a prompt takes its time, slice by slice, beside running streams") {
  engine_rig rig(sim_spec{.rate = 100, .prefill = 1000});
  auto quick = rig.submit(rig.job(1, 60, 1));
  const auto start = rig.clock.now();
  auto slow = rig.submit(rig.job(2, 1, 256));
  rig.run();
  const duration took = *slow->end->first_token - start;
  CHECK(took > 256ms);
  CHECK(took < 270ms);
  for (const auto g : gaps(*quick)) CHECK(near(g, 10ms));
}

TEST_CASE("bursts come together and keep the mean rate") {
  engine_rig rig(sim_spec{.rate = 100, .burst = 4});
  auto sink = rig.submit(rig.job(1, 40));
  rig.run();
  const auto g = gaps(*sink);
  for (std::size_t i = 0; i < g.size(); ++i) CHECK(near(g[i], i % 4 == 3 ? 40ms : 0ms));
}

TEST_CASE("a stall moves what would fall into it to its end") {
  engine_rig rig(sim_spec{.rate = 100, .stall_every = 1000ms, .stall_for = 95ms});
  rig.clock.advance(900ms);
  auto sink = rig.submit(rig.job(1, 30));
  rig.run();
  int stalls = 0;
  for (const auto g : gaps(*sink)) {
    if (near(g, 10ms) || near(g, 5ms)) continue;
    ++stalls;
    CHECK(g > 90ms);
    CHECK(g < 110ms);
  }
  CHECK(stalls == 1);
}

TEST_CASE("an owner that comes late finds one token due, not all that it missed") {
  engine_rig rig(sim_spec{.rate = 100});
  auto sink = rig.submit(rig.job(1, 30));
  rig.step();
  rig.clock.advance(500ms);
  CHECK(rig.step().tokens == 1);
  CHECK(rig.step().tokens == 0);
  rig.run();
}

TEST_CASE("the N-th draw of a sim is a fault of its job alone, and the N-th forward of every job") {
  SECTION("sampler") {
    engine_rig rig(sim_spec{.sampler_fault = 5});
    auto a = rig.submit(rig.job(1, 10));
    auto b = rig.submit(rig.job(2, 10));
    rig.run();
    CHECK(a->end->reason == finish_reason::error);
    CHECK(a->tokens.size() == 2);
    CHECK(b->end->reason == finish_reason::length);
    CHECK_FALSE(rig.engine->fault());
  }
  SECTION("device") {
    engine_rig rig(sim_spec{.device_fault = 5});
    auto a = rig.submit(rig.job(1, 10));
    auto b = rig.submit(rig.job(2, 10));
    rig.run();
    CHECK(a->end->reason == finish_reason::error);
    CHECK(a->tokens.size() == 4);
    CHECK(b->end->reason == finish_reason::error);
    REQUIRE(rig.engine->fault());
    CHECK(rig.engine->fault()->message.find("device@5") != std::string::npos);
  }
}

}  // namespace weir::tests::sim_test
