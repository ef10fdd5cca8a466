// A client whose gateway is gone goes on at another gateway: the job is found by its id and key, its stream
// is made again, and what it says is what it would have said.
#include <catch2/catch.hpp>
#include <fstream>

#include "actors/fleet/far_search.h"
#include "core/fleet/control_frame.h"
#include "core/fleet/subjects.h"
#include "core/grammar/compile.h"
#include "tests/actors/fleet_resume_town.h"
#include "tests/support/data.h"

namespace weir::tests::fleet_resume_test {
namespace {

namespace wire = core::fleet;
using actors::job_search;
using std::chrono::milliseconds;
using std::chrono::seconds;
using search_end = job_search::end;
using answer = job_search::answer;
using fleet_of = resume_town;

}  // namespace

TEST_CASE("a job whose gateway was killed goes on at another, and is as if it had begun there") {
  fleet_of t(31);
  const auto s = t.running(fleet_of::asked(150, 8));
  t.first().bus->kill();
  t.wait(seconds(1));
  auto a = t.found_at(t.other(), s->id());
  REQUIRE(a.how == search_end::found);
  CHECK(a.job->owner == actors::principal{7, 0});
  CHECK(a.job->client == "for the client");
  CHECK(a.job->choices == std::vector{s->id()});
  CHECK(a.job->tokens >= 60);
  auto on = a.job->stream;
  CHECK(on->id() == s->id());
  t.finish(on);
  CHECK(text_of(*on) == sim_text(8, 150));
  CHECK(on->ended().output_tokens == 150);
  CHECK(on->ended().input_tokens == 5);
  CHECK(on->ended().reason == core::finish_reason::length);
  CHECK(on->sampled_at_us(149) > on->sampled_at_us(0));
  const auto off = on->created() - s->created();
  CHECK(std::abs(std::chrono::duration_cast<milliseconds>(off).count()) <= 30);
  t.wait(seconds(1));
  CHECK(t.other().side->counts().adopted == 1);
  CHECK(t.workers.front().side->counts().adopted == 1);
  CHECK(t.workers.front().side->counts().cut_off == 0);
  CHECK(t.workers.front().side->counts().taken == 1);
  t.check_empty({&t.other()});
  on.reset();
  a.job.reset();
  CHECK(t.other().service->memory()->used() == 0);
}

TEST_CASE("a resumed job moves like any other when its worker is killed") {
  fleet_of t(32, 2, 2);
  const auto s = t.running(fleet_of::asked(200, 9));
  const auto on = t.resumed_and_moved(s->id());
  CHECK(text_of(*on) == sim_text(9, 200));
  t.wait(seconds(1));
  CHECK(t.other().side->counts().moved == 1);
}

TEST_CASE("a job that had moved is found with what its first worker said") {
  fleet_of t(33, 2, 2);
  const auto s = t.running(fleet_of::asked(200, 9), 50);
  for (auto& w : t.workers)
    if (w.service->stats().engine.decoding > 0) w.bus->kill();
  REQUIRE(t.here.run([&] { return s->published() >= 80; }, seconds(30)));
  t.first().bus->kill();
  const auto on = t.resumed_at(t.other(), s->id());
  t.finish(on);
  CHECK(text_of(*on) == sim_text(9, 200));
  CHECK(on->ended().output_tokens == 200);
}

TEST_CASE("a prompt longer than a message is found in parts, under loss") {
  net_manners lossy;
  lossy.loss = 0.02;
  lossy.twice = 0.02;
  fleet_of t(34, 2, 1, "rate=50", lossy);
  for (auto& g : t.gateways) g.bus->longest = 4096;
  t.workers.front().bus->longest = 4096;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto s = t.running(fleet_of::asked(60, seed, std::string(9000, 'x')));
    std::shared_ptr<job_stream> on;
    while (!on) {  // a lost part is a part too few: a client asks again
      const auto a = t.found_at(t.other(), s->id());
      if (a.how == search_end::found) on = a.job->stream;
    }
    t.finish(on);
    CHECK(text_of(*on) == sim_text(seed, 60));
    CHECK(on->ended().input_tokens == 9000);
  }
}

TEST_CASE("each choice of an answer is found, and the first names all") {
  fleet_of t(35);
  auto r = fleet_of::asked(120, 5);
  r.sampling.seed.reset();  // each choice draws its own
  const auto all = t.first().service->submit(r, 3, t.here.get_executor(), [] {});
  REQUIRE(t.here.run([&] { return all[2]->published() >= 20; }, seconds(30)));
  std::vector<core::job_id> ids;
  for (const auto& one : all) ids.push_back(one->id());
  t.first().bus->kill();
  const auto a = t.found_at(t.other(), ids[0]);
  REQUIRE(a.how == search_end::found);
  CHECK(a.job->choices == ids);
  const auto b = t.found_at(t.other(), ids[1]), c = t.found_at(t.other(), ids[2]);
  REQUIRE(b.how == search_end::found);
  REQUIRE(c.how == search_end::found);
  CHECK(b.job->choices.empty());
  CHECK(b.job->client.empty());
  const std::shared_ptr<job_stream> on[] = {a.job->stream, b.job->stream, c.job->stream};
  for (std::size_t i = 0; i < 3; ++i) {
    t.finish(on[i]);
    CHECK(on[i]->ended().output_tokens == 120);
    CHECK(text_of(*on[i]).starts_with(text_of(*all[i])));
  }
  CHECK(text_of(*on[0]) != text_of(*on[1]));
}

TEST_CASE("logprobs and special tokens come again as they were, and what was lost with a worker is refused") {
  fleet_of t(36, 2, 2);
  auto r = fleet_of::asked(120, 6);
  r.top_logprobs = 3;
  const auto near = t.workers.front().service->submit(r, t.here.get_executor(), [] {});
  t.finish(near);
  const auto s = t.running(r);
  t.first().bus->kill();
  const auto on = t.resumed_at(t.other(), s->id());
  t.finish(on);
  REQUIRE(on->log().size() == 120);
  REQUIRE(on->log().logprobs_each() == 4);
  for (std::uint32_t i = 0; i < 120; ++i)
    for (std::size_t k = 0; k < 4; ++k) {
      CHECK(on->log().logprobs(i)[k].id == near->log().logprobs(i)[k].id);
      CHECK(on->log().logprobs(i)[k].logprob == near->log().logprobs(i)[k].logprob);
    }
  r.sampling.seed = 77;
  auto& second = t.other();
  const auto moves = t.send(second, r);
  REQUIRE(t.here.run([&] { return moves->published() >= 20; }, seconds(10)));
  for (auto& w : t.workers)
    if (w.service->stats().engine.decoding > 0) w.bus->kill();
  REQUIRE(t.here.run([&] { return moves->published() >= 60; }, seconds(30)));
  second.bus->kill();
  auto& third = t.add_gateway();
  t.wait(seconds(1));
  const auto a = t.found_at(third, moves->id());
  REQUIRE(a.how == search_end::refused);
  CHECK(a.why->message.find("logprobs") != std::string::npos);
}

TEST_CASE("a constraint is the worker's still, and follows the job when its worker is killed after that") {
  const temporary_dir dir;
  const auto file = dir.path() / "answer.txt";
  std::ofstream(file) << R"({"say":")" << std::string(400, 'q') << R"("})"
                      << "\n";
  fleet_of t(37, 2, 2, "rate=50,script=" + file.string());
  auto r = fleet_of::asked(90, 6);
  r.constraint.emplace();
  r.constraint->what = core::grammar::constraint_text::kind::regex;
  r.constraint->text = "([a-p]{3}-){30}";
  r.constraint_param = "regex";
  const auto near = t.workers.front().service->submit(r, t.here.get_executor(), [] {});
  t.finish(near);
  const auto s = t.running(r);
  const auto on = t.resumed_and_moved(s->id());
  CHECK(on->ended().output_tokens == 90);
  CHECK(text_of(*on) == text_of(*near));
}

TEST_CASE("who does not know the id, or has another key or user, hears nothing") {
  fleet_of t(38);
  const auto s = t.running(fleet_of::asked(300, 8));
  auto of_user = fleet_of::asked(300, 9);
  of_user.who = {7, 5};
  const auto u = t.running(of_user);
  const auto began = t.here.now();
  CHECK(t.found_at(t.other(), {1, 2}).how == search_end::nothing);
  CHECK(t.here.now() - began < seconds(1));
  CHECK(t.found_at(t.other(), s->id(), {8, 0}).how == search_end::nothing);
  CHECK(t.found_at(t.other(), s->id(), {0, 0}).how == search_end::nothing);
  CHECK(t.found_at(t.other(), s->id(), {7, 5}).how == search_end::nothing);  // it is the key's own
  CHECK(t.found_at(t.other(), u->id(), {7, 6}).how == search_end::nothing);
  t.wait(seconds(1));
  CHECK(t.workers.front().side->counts().adopted == 0);
  CHECK(t.workers.front().side->counts().silent >= 3);
  CHECK(t.other().side->counts().adopted == 0);
  auto by_user = t.found_at(t.other(), u->id(), {7, 5});
  REQUIRE(by_user.how == search_end::found);
  CHECK(by_user.job->owner == actors::principal{7, 5});
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 300));
  t.finish(by_user.job->stream);
  CHECK(text_of(*by_user.job->stream) == sim_text(9, 300));
}

TEST_CASE("a job that nobody may resume is not kept for others, and is not found") {
  fleet_of t(39);
  auto r = fleet_of::asked(100, 8);
  r.resumable = nullptr;
  const auto s = t.running(r);
  CHECK(t.found_at(t.other(), s->id()).how == search_end::nothing);
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 100));
}

TEST_CASE("what cannot go on at another gateway is refused by name") {
  fleet_of t(40);
  auto r = fleet_of::asked(100, 8);
  r.echo = true;
  const auto s = t.running(r);
  const auto a = t.found_at(t.other(), s->id());
  REQUIRE(a.how == search_end::refused);
  CHECK(a.why->code == core::errc::not_supported);
  CHECK(a.why->message.find("echo") != std::string::npos);
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 100));
}

TEST_CASE("where the first gateway lives still, its stream ends by name and the last adopter's goes on") {
  fleet_of t(41, 3);
  const auto s = t.running(fleet_of::asked(200, 8));
  const auto second = t.resumed_at(t.gateways[1], s->id());
  t.finish(s);
  REQUIRE(s->ended().fault.has_value());
  CHECK(s->ended().fault->code == core::errc::adopted);
  const auto third = t.resumed_at(t.other(), s->id());
  t.finish(second);
  CHECK(second->ended().fault->code == core::errc::adopted);
  t.first().service->cancel_all();  // what the former ones say of it is void
  s->cancel();
  second->cancel();
  REQUIRE(t.here.run([&] { return third->published() >= 100; }, seconds(30)));
  const auto back = t.resumed_at(t.first(), s->id());
  t.finish(back);
  CHECK(text_of(*back) == sim_text(8, 200));
  t.finish(third);
  CHECK(third->ended().fault->code == core::errc::adopted);
  t.wait(seconds(1));
  CHECK(t.first().side->counts().given == 1);
  CHECK(t.workers.front().side->counts().adopted == 3);
  CHECK(t.workers.front().side->counts().taken == 1);
  t.check_empty({&t.first(), &t.gateways[1], &t.other()});
}

TEST_CASE("two gateways that look for a job at once: one has it, the other ends by name") {
  for (std::uint64_t seed = 50; seed < 60; ++seed) {
    fleet_of t(seed, 3);
    const auto s = t.running(fleet_of::asked(150, 8));
    t.first().bus->kill();
    const auto a = t.begin_find(t.gateways[1], s->id()), b = t.begin_find(t.other(), s->id());
    REQUIRE(t.here.run([&] { return a->has_value() && b->has_value(); }, seconds(5)));
    REQUIRE((*a)->how == search_end::found);
    REQUIRE((*b)->how == search_end::found);
    const std::shared_ptr<job_stream> both[] = {(*a)->job->stream, (*b)->job->stream};
    t.finish(both[0]);
    t.finish(both[1]);
    int whole = 0, adopted = 0;
    for (const auto& one : both) {
      whole += text_of(*one) == sim_text(8, 150) && !one->ended().fault;
      adopted += one->ended().fault && one->ended().fault->code == core::errc::adopted;
    }
    CHECK(whole == 1);
    CHECK(adopted == 1);
  }
}

TEST_CASE("two clients of one gateway that look for a job share one search") {
  fleet_of t(61);
  const auto s = t.running(fleet_of::asked(150, 8));
  t.first().bus->kill();
  const auto a = t.begin_find(t.other(), s->id()), b = t.begin_find(t.other(), s->id());
  REQUIRE(t.here.run([&] { return a->has_value() && b->has_value(); }, seconds(5)));
  CHECK((*a)->how == search_end::found);
  CHECK((*b)->how == search_end::here);
  CHECK(t.found_at(t.other(), s->id()).how == search_end::here);
  t.wait(seconds(1));
  CHECK(t.other().side->counts().searches == 1);
  t.finish((*a)->job->stream);
  CHECK(text_of(*(*a)->job->stream) == sim_text(8, 150));
}

TEST_CASE("a worker that dies while its job is looked for or adopted: it is found elsewhere or not at all") {
  int found = 0, gone = 0;
  for (int us = 0; us < 60'000; us += 2500) {
    fleet_of t(62 + static_cast<std::uint64_t>(us), 2, 2);
    const auto s = t.running(fleet_of::asked(80, 8));
    t.first().bus->kill();
    const auto a = t.begin_find(t.other(), s->id());
    t.wait(std::chrono::microseconds(us));
    for (auto& w : t.workers)
      if (w.service->stats().engine.decoding > 0) w.bus->kill();
    REQUIRE(t.here.run([&] { return a->has_value(); }, seconds(5)));
    if ((*a)->how == search_end::found) {
      ++found;
      t.finish((*a)->job->stream);
      CHECK(text_of(*(*a)->job->stream) == sim_text(8, 80));
    } else {
      ++gone;
      CHECK((*a)->how == search_end::nothing);
    }
  }
  CHECK(found > 0);
  CHECK(gone > 0);
}

TEST_CASE("a job that has ended is found for as long as its worker keeps it") {
  fleet_of t(63);
  const auto s = t.running(fleet_of::asked(30, 8));
  t.finish(s);  // its gateway has the ending, and has told the worker so
  t.wait(seconds(1));
  t.first().bus->kill();
  t.wait(seconds(2));
  const auto on = t.resumed_at(t.other(), s->id());
  t.finish(on);
  CHECK(text_of(*on) == sim_text(8, 30));
  CHECK(on->ended().reason == s->ended().reason);
  const auto late = t.send(t.other(), fleet_of::asked(30, 9));
  t.finish(late);
  t.wait(seconds(10));
  CHECK(t.found_at(t.gateways.back(), {3, 4}).how == search_end::nothing);
  auto& third = t.add_gateway();
  t.wait(seconds(1));
  CHECK(t.found_at(third, late->id()).how == search_end::nothing);
  CHECK(t.workers.front().side->counts().kept == 0);
  CHECK(t.workers.front().service->memory()->used() == 0);
}

TEST_CASE("a job that ended while nobody had it is found within the grace") {
  fleet_of t(64);
  const auto s = t.running(fleet_of::asked(40, 8));
  t.first().bus->kill();
  t.wait(seconds(3));
  const auto on = t.resumed_at(t.other(), s->id());
  t.finish(on);
  CHECK(text_of(*on) == sim_text(8, 40));
}

TEST_CASE("a cancel at the new gateway ends the job, and one at the old gateway does not") {
  fleet_of t(65);
  const auto s = t.running(fleet_of::asked(3000, 8));
  t.first().bus->stall(true);
  const auto on = t.resumed_at(t.other(), s->id());
  s->cancel();
  t.wait(milliseconds(500));
  t.first().bus->stall(false);
  t.finish(s);
  REQUIRE(t.here.run([&] { return on->published() >= 100; }, seconds(10)));
  CHECK_FALSE(fleet_town::over(on));
  on->cancel();
  t.finish(on);
  CHECK(on->ended().reason == core::finish_reason::cancel);
  t.wait(seconds(1));
  CHECK(t.workers.front().service->stats().engine.decoding == 0);
  t.check_empty({&t.first(), &t.other()});
}

TEST_CASE("a cancel while the job is being adopted reaches its worker") {
  fleet_of t(66);
  const auto s = t.running(fleet_of::asked(3000, 8));
  t.first().bus->kill();
  const auto a = t.begin_find(t.other(), s->id());
  REQUIRE(t.here.run([&] { return a->has_value(); }, seconds(5)));
  REQUIRE((*a)->how == search_end::found);
  (*a)->job->stream->cancel();
  t.finish((*a)->job->stream);
  CHECK((*a)->job->stream->ended().reason == core::finish_reason::cancel);
  t.wait(seconds(1));
  CHECK(t.workers.front().service->stats().engine.decoding == 0);
}

TEST_CASE("a job with a deadline keeps it, and one that may pause pauses at its new gateway") {
  fleet_of t(67);
  auto r = fleet_of::asked(3000, 8);
  r.deadline = milliseconds(4000);
  r.may_pause = true;
  const auto s = t.running(r);
  t.first().bus->kill();
  const auto on = t.resumed_at(t.other(), s->id());
  REQUIRE(t.here.run([&] { return on->published() >= 40; }, seconds(10)));
  on->pause(t.here.now() + seconds(60));
  t.wait(milliseconds(500));
  const auto before = on->published();
  t.wait(seconds(1));
  CHECK(on->published() == before);
  on->resume();
  t.finish(on);
  CHECK(on->ended().reason == core::finish_reason::timeout);
  const auto lived = std::chrono::duration_cast<milliseconds>(t.here.now() - s->created());
  CHECK(std::abs(lived.count() - 4000) < 200);
}

TEST_CASE("more searches than a gateway has room for are refused, and nothing is left of them") {
  fleet_of t(68);
  std::vector<std::shared_ptr<std::optional<answer>>> all;
  constexpr std::size_t n = actors::fleet::far_searches::most_of_a_key + 10;
  for (std::size_t i = 0; i < n; ++i) all.push_back(t.begin_find(t.other(), {i, 1}));
  REQUIRE(t.here.run([&] { return std::ranges::all_of(all, [](const auto& a) { return a->has_value(); }); },
                     seconds(5)));
  const auto refused =
      std::ranges::count_if(all, [](const auto& a) { return (*a)->how == search_end::refused; });
  CHECK(refused == 10);
  t.wait(seconds(1));
  CHECK(t.other().side->counts().crowded == 10);
  CHECK(t.other().service->memory()->used() == 0);
  const auto s = t.running(fleet_of::asked(50, 8));
  CHECK(t.found_at(t.other(), s->id()).how == search_end::found);
}

TEST_CASE("a stranger's answers to a question that it cannot know move nothing") {
  fleet_of t(69);
  const auto stranger = t.net->join();
  const wire::subjects names("main");
  const auto a = t.begin_find(t.other(), {1, 2}, {7, 0});
  wire::found f;
  f.job = {{1, 2}, 0};
  f.worker = t.workers.front().side->name();
  f.model = "sim";
  f.bytes = "not a job";
  for (std::uint64_t guess = 0; guess < 100; ++guess) {
    f.question = guess;
    stranger->publish(names.answers_to(t.other().side->name()), wire::frame_of(f));
  }
  REQUIRE(t.here.run([&] { return a->has_value(); }, seconds(5)));
  CHECK((*a)->how == search_end::nothing);
  const auto s = t.running(fleet_of::asked(150, 8));
  const auto worker = t.workers.front().side->name();
  stranger->publish(names.answers_to(t.first().side->name()),
                    wire::frame_of(wire::adopted{t.name(), {{s->id(), 0}}}));
  const auto control = names.control_of(worker);
  stranger->publish(control, wire::frame_of(wire::adopt{{s->id(), 0}, 1234, t.name(), 1, 0}));  // another key
  stranger->publish(control,
                    wire::frame_of(wire::adopt{{s->id(), 9}, 7, t.name(), 1, 0}));  // no such attempt
  stranger->publish(names.finds(), wire::frame_of(wire::find{s->id(), 1234, 5, t.name()}));
  stranger->publish(names.finds(), "noise");
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 150));
  t.wait(seconds(1));
  CHECK(t.other().side->counts().void_news >= 100);
  CHECK(t.workers.front().side->counts().adopted == 0);
  CHECK(t.workers.front().side->counts().silent >= 3);
}

TEST_CASE("without a fleet, or with its bus down, nothing is found and the client is told so") {
  fleet_of t(70);
  bool told = false;
  job_search s{
      {1, 2}, {7, 0}, {}, t.here.get_executor(), [&](answer a) { told = a.how == search_end::nothing; }};
  CHECK_FALSE(t.workers.front().service->finds_elsewhere());
  t.workers.front().service->find_elsewhere(std::move(s));
  REQUIRE(t.here.run([&] { return told; }, seconds(1)));
  t.other().bus->cut(true);
  t.wait(milliseconds(100));
  const auto a = t.found_at(t.other(), {1, 2});
  REQUIRE(a.how == search_end::refused);
  CHECK(a.why->code == core::errc::unavailable);
  bool idle = false;
  t.first().service->drain(t.here.get_executor(), [&] { idle = true; });
  REQUIRE(t.here.run([&] { return idle; }, seconds(1)));
  const auto late = t.found_at(t.first(), {1, 2});
  REQUIRE(late.how == search_end::refused);
  CHECK(late.why->message.find("shutting down") != std::string::npos);
}

}  // namespace weir::tests::fleet_resume_test
