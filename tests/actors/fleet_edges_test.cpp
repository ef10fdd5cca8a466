// What a fleet does at its edges: long prompts, logprobs, constraints, drains, gateways that go, strangers.
#include <catch2/catch.hpp>
#include <fstream>

#include "core/fleet/control_frame.h"
#include "core/fleet/subjects.h"
#include "core/fleet/token_frame.h"
#include "core/grammar/compile.h"
#include "tests/actors/fleet_town.h"
#include "tests/support/data.h"

namespace weir::tests::fleet_edges_test {
namespace {

namespace wire = core::fleet;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A gateway and `workers` workers that have seen each other.
struct small_fleet : fleet_town {
  explicit small_fleet(std::uint64_t seed, int count = 1, std::string sim = "rate=50")
      : fleet_town(seed, std::move(sim)) {
    for (int i = 0; i < count; ++i) add_worker(quick());
    add_gateway();
    wait(seconds(1));
  }
  // Nothing is left of any job in a worker.
  void check_empty() {
    wait(seconds(10));
    for (const auto& w : workers) {
      CHECK(w.side->counts().jobs == 0);
      CHECK(w.side->counts().kept == 0);
      CHECK(w.service->stats().engine.pages_used == 0);
      CHECK(w.service->memory()->used() == 0);
    }
    CHECK(gateways.front().side->counts().jobs == 0);
  }
  // The worker that has the job.
  worker& host_of_jobs() {
    for (auto& w : workers) {
      const auto e = w.service->stats().engine;
      if (e.queued + e.prefilling + e.decoding > 0) return w;
    }
    FAIL("no worker has a job");
    return workers.front();
  }
};

}  // namespace

TEST_CASE("a prompt longer than a message goes in parts") {
  small_fleet t(11);
  t.gateways.front().bus->longest = 4096;
  auto r = ask(std::string(9000, 'x'), 10, 5);
  const auto s = t.send(r);
  t.finish(s);
  REQUIRE(s->state() == phase::done);
  CHECK(text_of(*s) == sim_text(5, 10));
  CHECK(s->ended().input_tokens == 9000);
  const auto too_long = t.send(ask(std::string(90'000, 'x'), 10, 5));  // more than sixteen messages
  t.finish(too_long);
  REQUIRE(too_long->ended().fault.has_value());
  CHECK(too_long->ended().fault->code == core::errc::invalid_param);
  CHECK(too_long->ended().fault->param == "prompt");
  t.check_empty();
}

TEST_CASE("logprobs of a far job are those of a job that runs here") {
  small_fleet t(12);
  auto r = ask("hello", 40, 6);
  r.top_logprobs = 3;
  const auto far = t.send(r);
  auto near = t.workers.front().service->submit(r, t.here.get_executor(), [] {});
  t.finish(far);
  t.finish(near);
  REQUIRE(far->log().size() == 40);
  REQUIRE(near->log().size() == 40);
  REQUIRE(far->log().logprobs_each() == 4);
  for (std::uint32_t i = 0; i < 40; ++i) {
    const auto a = far->log().logprobs(i), b = near->log().logprobs(i);
    for (std::size_t k = 0; k < 4; ++k) {
      CHECK(a[k].id == b[k].id);
      CHECK(a[k].logprob == b[k].logprob);
    }
  }
  near.reset();
  t.check_empty();
}

TEST_CASE("prompt_logprobs of a far model that is simulated are refused by name") {
  small_fleet t(13);
  auto r = ask("hello", 4, 6);
  r.prompt_logprobs = 1;
  const auto s = t.send(r);
  t.finish(s);
  REQUIRE(s->state() == phase::refused);
  CHECK(s->refusal().param == "prompt_logprobs");
}

TEST_CASE("a constraint travels as its source, and follows the job when its worker is killed") {
  const temporary_dir dir;
  const auto file = dir.path() / "answer.txt";
  std::ofstream(file) << R"({"say":")" << std::string(400, 'q') << R"("})"
                      << "\n";
  small_fleet t(14, 2, "rate=50,script=" + file.string());
  auto r = ask("hello", 60, 6);
  r.constraint.emplace();
  r.constraint->what = core::grammar::constraint_text::kind::regex;
  r.constraint->text = "([a-p]{3}-){30}";
  r.constraint_param = "regex";
  const auto near = t.workers.front().service->submit(r, t.here.get_executor(), [] {});
  t.finish(near);
  const auto s = t.send(r);
  REQUIRE(t.here.run([&] { return s->published() >= 20; }, seconds(30)));
  t.host_of_jobs().bus->kill();
  t.finish(s);
  CHECK(s->ended().output_tokens == 60);
  CHECK(text_of(*s) == text_of(*near));
  CHECK(text_of(*s).substr(3, 1) == "-");
  t.wait(seconds(1));
  CHECK(t.gateways.front().side->counts().moved == 1);
  auto wrong = r;
  wrong.constraint->text = "([a-z";
  const auto refused = t.send(wrong);
  t.finish(refused);
  REQUIRE(refused->state() == phase::refused);
  CHECK(refused->refusal().param.starts_with("regex"));
}

TEST_CASE("what is left when a drain ends moves, and the worker is free") {
  small_fleet t(15, 2);
  const auto s = t.send(ask("hello", 300, 8));
  REQUIRE(t.here.run([&] { return s->published() >= 20; }, seconds(30)));
  auto& w = t.host_of_jobs();
  bool free = false;
  w.side->drain(milliseconds(500), t.here.get_executor(), [&] { free = true; });
  REQUIRE(t.here.run([&] { return free; }, seconds(5)));
  CHECK(w.service->stats().engine.decoding + w.service->stats().engine.queued == 0);
  const auto late = t.send(ask("hello", 5, 9));
  t.finish(late);
  CHECK(text_of(*late) == sim_text(9, 5));
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 300));
  t.check_empty();
}

TEST_CASE("a drain waits for jobs that end in time") {
  small_fleet t(16, 2);
  const auto s = t.send(ask("hello", 60, 8));
  REQUIRE(t.here.run([&] { return s->published() >= 20; }, seconds(30)));
  bool free = false;
  t.host_of_jobs().side->drain(seconds(30), t.here.get_executor(), [&] { free = true; });
  REQUIRE(t.here.run([&] { return free; }, seconds(5)));
  CHECK(fleet_town::over(s));
  t.wait(seconds(1));
  CHECK(t.gateways.front().side->counts().moved == 0);
}

TEST_CASE("an operator drains a worker, which goes on and takes jobs again when it is told to") {
  small_fleet t(17, 2);
  const auto s = t.send(ask("hello", 300, 8));
  REQUIRE(t.here.run([&] { return s->published() >= 20; }, seconds(30)));
  auto& w = t.host_of_jobs();
  const auto operator_bus = t.net->join();
  const auto tell = [&](const wire::control& what) {
    std::optional<core::result<wire::fleet_board>> board;
    operator_bus->ask(wire::subjects("main").control_of(w.side->name()), wire::frame_of(what), seconds(5),
                      t.here.get_executor(),
                      [&](actors::bus::answer a) { board = wire::read_board(a.bytes); });
    REQUIRE(t.here.run([&] { return board.has_value(); }, seconds(10)));
    REQUIRE(board->has_value());
    return (*board)->state;
  };
  CHECK(tell(wire::drain{milliseconds(-5)}) == wire::worker_state::leaving);
  t.wait(seconds(1));
  CHECK(t.gateways.front().side->counts().moved == 1);
  const auto taken = w.side->counts().taken;
  for (int i = 0; i < 4; ++i) {
    const auto late = t.send(ask("hello", 5, 9));
    t.finish(late);
    CHECK(text_of(*late) == sim_text(9, 5));
  }
  CHECK(w.side->counts().taken == taken);
  CHECK(w.service->stats().engine.decoding == 0);
  CHECK(tell(wire::undrain()) == wire::worker_state::ready);
  t.wait(seconds(1));
  std::vector<std::shared_ptr<job_stream>> all;
  for (int i = 0; i < 16; ++i) all.push_back(t.send(ask("hello", 50, 10)));
  for (const auto& one : all) t.finish(one);
  CHECK(w.side->counts().taken > taken);
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 300));
  bool free = false;
  w.side->drain(seconds(30), t.here.get_executor(), [&] { free = true; });
  CHECK(tell(wire::undrain()) == wire::worker_state::leaving);  // its process ends
  REQUIRE(t.here.run([&] { return free; }, seconds(5)));
  t.check_empty();
}

TEST_CASE("the jobs of a gateway that is gone run on for the grace, and then end") {
  small_fleet t(17);
  const auto s = t.send(ask("hello", 5000, 8));
  REQUIRE(t.here.run([&] { return s->published() >= 20; }, seconds(30)));
  t.gateways.front().bus->kill();
  const auto& w = t.workers.front();
  t.wait(seconds(4));
  CHECK(w.side->counts().jobs == 1);
  t.wait(seconds(3));
  CHECK(w.side->counts().jobs == 0);
  CHECK(w.side->counts().cut_off == 1);
  CHECK(w.service->stats().engine.pages_used == 0);
}

TEST_CASE("a gateway that ends tells its streams, and its workers forget the jobs") {
  small_fleet t(18);
  const auto s = t.send(ask("hello", 5000, 8));
  REQUIRE(t.here.run([&] { return s->published() >= 20; }, seconds(30)));
  t.gateways.front().side.reset();
  t.finish(s);
  CHECK(s->ended().reason == core::finish_reason::error);
  CHECK(s->ended().fault->code == core::errc::unavailable);
  t.wait(seconds(1));
  CHECK(t.workers.front().side->counts().jobs == 0);
}

TEST_CASE("a worker that ends gives its jobs to others") {
  small_fleet t(19, 2);
  const auto s = t.send(ask("hello", 200, 8));
  REQUIRE(t.here.run([&] { return s->published() >= 20; }, seconds(30)));
  auto& w = t.host_of_jobs();
  w.side.reset();
  w.bus->kill();
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 200));
  CHECK(w.service->stats().engine.decoding == 0);
}

TEST_CASE("a job that may pause pauses in its worker and goes on") {
  small_fleet t(20);
  auto r = ask("hello", 100, 8);
  r.may_pause = true;
  const auto s = t.send(r);
  REQUIRE(t.here.run([&] { return s->published() >= 20; }, seconds(30)));
  s->pause(t.here.now() + seconds(60));
  t.wait(seconds(1));
  const auto before = s->published();
  t.wait(seconds(5));
  CHECK(s->published() == before);
  s->resume();
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 100));
  t.check_empty();
}

TEST_CASE("a worker that was stalled finds its jobs moved, and drops them") {
  small_fleet t(21, 2);
  const auto s = t.send(ask("hello", 400, 8));
  REQUIRE(t.here.run([&] { return s->published() >= 20; }, seconds(30)));
  auto& w = t.host_of_jobs();
  w.bus->stall(true);
  REQUIRE(t.here.run([&] { return s->published() >= 60; }, seconds(10)));
  w.bus->stall(false);
  t.wait(seconds(1));
  CHECK(w.side->counts().jobs == 0);
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 400));
  t.check_empty();
}

TEST_CASE("a stranger on the bus moves nothing, and what it sends is counted") {
  small_fleet t(22);
  const auto s = t.send(ask("hello", 150, 8));
  REQUIRE(t.here.run([&] { return s->published() >= 20; }, seconds(30)));
  const auto& w = t.workers.front();
  const auto& g = t.gateways.front();
  const auto stranger = t.net->join();
  const wire::subjects names("main");
  const std::string self = t.name();
  const wire::job_name real{s->id(), 0}, newer{s->id(), 1}, guessed{{1, 2}, 0};
  const auto say = [&](const std::string& subject, const std::string& bytes) {
    stranger->publish(subject, bytes);
  };
  const auto control = names.control_of(w.side->name());
  for (int i = 0; i < 200; ++i) {
    std::string noise(t.here.random() % 300, '\0');
    for (char& c : noise) c = static_cast<char>(t.here.random());
    if (!noise.empty()) noise[0] = 1;
    if (noise.size() > 1) noise[1] = static_cast<char>(1 + t.here.random() % 15);
    for (const auto& subject : {names.jobs_of(w.side->name()), control, names.tokens_to(g.side->name()),
                                names.answers_to(g.side->name()), names.board_of(w.side->name())})
      say(subject, noise);
  }
  say(control, wire::frame_of(wire::cancel{newer, core::finish_reason::cancel}));
  say(control, wire::frame_of(wire::cancel{guessed, core::finish_reason::cancel}));
  say(control, wire::frame_of(wire::again{self, {{real, 0}}}));       // it is another's job
  say(control, wire::frame_of(wire::adopt{real, 1234, self, 1, 0}));  // of another key
  say(control, wire::frame_of(wire::drop{{newer, guessed}}));
  say(names.answers_to(g.side->name()), wire::frame_of(wire::gone{self, {real}}));  // it has no such job
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 150));
  t.wait(seconds(1));
  CHECK(w.side->counts().broken >= 100);
  CHECK(g.side->counts().broken >= 100);
  CHECK(g.side->counts().moved == 0);
  CHECK(g.side->workers().size() == 1);
  t.check_empty();
}

TEST_CASE("a worker whose model has other tokens is no worker of the gateway's model") {
  const temporary_dir dir;
  const auto file = dir.path() / "answer.txt";
  std::ofstream(file) << R"({"say":"yes"})"
                      << "\n";
  fleet_town t(24);
  t.add_worker();
  t.spec = "sim:script=" + file.string();
  auto& g = t.add_gateway();
  t.wait(seconds(1));
  const auto s = t.send(g, ask("hello", 5, 8));
  REQUIRE(t.here.run([&] { return fleet_town::over(s); }));
  REQUIRE(s->state() == phase::refused);
  CHECK(s->refusal().code == core::errc::unavailable);
  REQUIRE(g.side->workers().size() == 1);
  t.add_worker();
  t.wait(seconds(1));
  const auto right = t.send(g, ask("hello", 5, 8));
  REQUIRE(t.here.run([&] { return fleet_town::over(right); }));
  CHECK(text_of(*right) == "yes");
}

TEST_CASE("a newcomer that every worker is too full for is told so, and a job that ran waits") {
  fleet_town t(25);
  t.most_jobs = 2;
  t.add_worker(t.quick());
  t.add_worker(t.quick());
  auto& g = t.add_gateway();
  t.wait(seconds(1));
  std::vector<std::shared_ptr<job_stream>> ran;
  for (std::uint64_t seed = 0; seed < 4; ++seed) ran.push_back(t.send(g, ask("hello", 200, seed)));
  REQUIRE(
      t.here.run([&] { return std::ranges::all_of(ran, [](const auto& s) { return s->published() > 10; }); },
                 seconds(20)));
  const auto late = t.send(g, ask("hello", 5, 9));
  REQUIRE(t.here.run([&] { return fleet_town::over(late); }, seconds(5)));
  REQUIRE(late->state() == phase::refused);
  CHECK(late->refusal().code == core::errc::overloaded);
  t.workers.front().bus->kill();  // two of them have to wait until the other two have ended
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    REQUIRE(t.here.run([&] { return fleet_town::over(ran[seed]); }, seconds(60)));
    CHECK(text_of(*ran[seed]) == sim_text(seed, 200));
  }
}

TEST_CASE("a job that ran is taken by the worker that refused it, once another gateway's job has left it") {
  fleet_town t(23);
  t.most_jobs = 1;
  t.add_worker();
  t.add_gateway();
  t.add_gateway();
  t.wait(std::chrono::seconds(1));
  const auto first = t.send(t.gateways.back(), ask("hello", 200, 1));
  REQUIRE(t.here.run([&] { return first->published() >= 10; }));
  t.add_worker();
  t.wait(std::chrono::seconds(1));
  const auto moved = t.send(t.gateways.front(), ask("hello", 300, 2));
  REQUIRE(t.here.run([&] { return moved->published() >= 10; }));
  t.workers.back().bus->kill();
  REQUIRE(t.here.run([&] { return t.all_over(); }, std::chrono::seconds(60)));
  REQUIRE(moved->state() == phase::done);
  CHECK(text_of(*moved) == sim_text(2, 300));
  CHECK(t.gateways.front().side->counts().hops >= 1);  // it was refused first
}

TEST_CASE("another gateway adopts a job with its key, and hears its tokens from where it says") {
  small_fleet t(23);
  const auto s = t.send(ask("hello", 100, 8));
  REQUIRE(t.here.run([&] { return s->published() >= 20; }, seconds(30)));
  t.gateways.front().bus->kill();
  const auto other = t.net->join();
  const std::string self = t.name();
  const wire::subjects names("main");
  wire::token_frame f;
  std::vector<core::token_id> heard;
  bool ended = false;
  const auto ear =
      other->subscribe(names.tokens_to(self), t.here.get_executor(), [&](actors::bus::message m) {
        REQUIRE(f.read(m.bytes));
        for (const auto& n : f.jobs) {
          CHECK(n.slot == 77);
          CHECK(n.from == 5 + heard.size());
          for (auto i = n.begin; i < n.end; ++i) heard.push_back(f.tokens[i].id);
          ended = ended || n.ended;
        }
      });
  std::optional<wire::control> answer;
  other->ask(names.control_of(t.workers.front().side->name()),
             wire::frame_of(wire::adopt{{s->id(), 0}, 0, self, 77, 5}), seconds(1), t.here.get_executor(),
             [&](actors::bus::answer a) { answer = wire::read_control(a.bytes); });
  REQUIRE(t.here.run([&] { return ended; }, seconds(30)));
  REQUIRE(answer.has_value());
  CHECK(std::holds_alternative<wire::taken>(*answer));
  REQUIRE(heard.size() == 95);
  for (std::uint32_t i = 0; i < 95; ++i) CHECK(heard[i] == core::sim_token(8, 5 + i));
}

}  // namespace weir::tests::fleet_edges_test
