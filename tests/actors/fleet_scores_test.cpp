// Logprobs of a prompt come from a worker as they are computed there, in pieces, whatever the bus loses.
#include <algorithm>
#include <catch2/catch.hpp>

#include "core/fleet/score_frame.h"
#include "core/fleet/subjects.h"
#include "tests/actors/fleet_town.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::fleet_scores_test {
namespace {

namespace wire = core::fleet;
using std::chrono::milliseconds;
using std::chrono::seconds;
using scores = std::vector<core::scored_token>;

// Workers and a gateway with a small model of real layers, whose messages are short.
struct scored_fleet : fleet_town {
  explicit scored_fleet(std::uint64_t seed, int count = 1) : fleet_town(seed) {
    write_toy_directory(dir.path(), {.seed = 4});
    spec = dir.path().string();
    device = "cpu";
    for (int i = 0; i < count; ++i) add();
    add_gateway();
    gateways.front().bus->longest = 4096;
    wait(seconds(1));
  }
  void add() { add_worker(quick()).bus->longest = 4096; }
  static actors::request question(int number, std::int64_t tokens) {
    auto r = ask(prompt_of(number, 250), tokens, 5);
    r.prompt_logprobs = 5;
    r.ignore_eos = true;
    return r;
  }
  // What a worker says where no gateway is between.
  std::shared_ptr<job_stream> undisturbed(const actors::request& r) {
    auto s = workers.back().service->submit(r, here.get_executor(), [] {});
    finish(s);
    return s;
  }
  scores right(const actors::request& r) {
    const auto s = undisturbed(r);
    REQUIRE(s->ended().prompt_logprobs);
    REQUIRE(s->ended().prompt_logprobs->size() == 249);
    return *s->ended().prompt_logprobs;
  }
  // How many pieces were sent, from now on.
  std::shared_ptr<const int> count_pieces() {
    const auto count = std::make_shared<int>(0);
    pieces_ =
        std::move(*listener_->subscribe(">", here.get_executor(), [count](const actors::bus::message& m) {
          CHECK(m.bytes.size() <= 4096);
          if (wire::read_score_part(m.bytes)) ++*count;
        }));
    return count;
  }
  // Nothing is left of any job. REQUIRES: the test holds no stream any more.
  void check_empty() {
    wait(seconds(10));
    for (const auto& w : workers) {
      if (w.bus->killed()) continue;
      CHECK(w.side->counts().jobs + w.side->counts().kept == 0);
      CHECK(w.service->memory()->used() == 0);
    }
    CHECK(gateways.front().side->counts().jobs == 0);
    all.clear();
    CHECK(gateways.front().service->memory()->used() == 0);
  }

  const temporary_dir dir;

 private:
  const std::unique_ptr<loop_net::endpoint> listener_ = net->join();
  std::unique_ptr<actors::bus::subscription> pieces_;
};

void check_equal(const scores& a, const scores& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(i);
    CHECK(a[i].drawn.id == b[i].drawn.id);
    CHECK(a[i].drawn.logprob == b[i].drawn.logprob);
    CHECK(a[i].rank == b[i].rank);
    REQUIRE(a[i].count == b[i].count);
    for (std::uint32_t k = 0; k < a[i].count; ++k) {
      CHECK(a[i].likeliest[k].id == b[i].likeliest[k].id);
      CHECK(a[i].likeliest[k].logprob == b[i].likeliest[k].logprob);
    }
  }
}

void check_scores(const job_stream& s, const scores& right) {
  REQUIRE(s.state() == phase::done);
  CHECK(!s.ended().fault);
  REQUIRE(s.ended().prompt_logprobs);
  check_equal(*s.ended().prompt_logprobs, right);
}

}  // namespace

TEST_CASE("fleet scores: the logprobs of a far job's prompt are those of a job that runs here") {
  scored_fleet t(drawn_seed(501));
  const auto r = scored_fleet::question(1, 20);
  const auto right = t.right(r);
  const auto pieces = t.count_pieces();
  auto s = t.send(r);
  t.finish(s);
  check_scores(*s, right);
  CHECK(s->published() == 20);
  t.wait(milliseconds(100));  // the one who counts may hear the last piece after the gateway
  CHECK(*pieces >= 3);
  auto lone = ask("!", 1, 5);
  lone.prompt_logprobs = 0;
  auto one = t.send(lone);
  t.finish(one);
  check_scores(*one, {});  // of a prompt's first token there is none
  s.reset();
  one.reset();
  t.check_empty();
}

TEST_CASE("fleet scores: where messages are lost and come twice, each job's are whole") {
  for (unsigned round = 0; round < rounds(4); ++round) {
    scored_fleet t(drawn_seed(502 + round), 2);
    t.net->how.loss = 0.2;
    t.net->how.twice = 0.1;
    std::vector<std::shared_ptr<job_stream>> jobs;
    for (int i = 0; i < 6; ++i) jobs.push_back(t.send(scored_fleet::question(i, 1 + i * 5)));
    for (const auto& s : jobs) t.finish(s);
    t.net->how = {};
    for (int i = 0; i < 6; ++i) check_scores(*jobs[i], t.right(scored_fleet::question(i, 1 + i * 5)));
    jobs.clear();
    t.check_empty();
  }
}

TEST_CASE("fleet scores: a worker that is killed between two pieces is followed by another one") {
  for (const std::int64_t tokens : {1, 30}) {
    scored_fleet t(drawn_seed(520 + tokens));
    t.net->how.least = t.net->how.most = milliseconds(20);
    const auto pieces = t.count_pieces();
    const auto r = scored_fleet::question(2, tokens);
    auto s = t.send(r);
    REQUIRE(t.here.run([&] { return *pieces == 2; }, seconds(30)));
    REQUIRE(!fleet_town::over(s));
    CHECK(s->published() == tokens);  // the output does not wait for the logprobs
    t.workers.front().bus->kill();
    t.add();
    t.finish(s);
    CHECK(t.gateways.front().side->counts().moved == 1);
    CHECK(s->ended().reason == core::finish_reason::length);
    CHECK(text_of(*s) == text_of(*t.undisturbed(r)));
    check_scores(*s, t.right(r));
    s.reset();
    t.check_empty();
  }
}

TEST_CASE("fleet scores: an ending by a stop string outlives the worker that said it") {
  scored_fleet t(drawn_seed(523));
  t.net->how.least = t.net->how.most = milliseconds(20);
  auto r = scored_fleet::question(2, 100);
  const std::string text = text_of(*t.undisturbed(r));
  const auto letter = std::find_if(text.begin() + 8, text.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  REQUIRE(letter != text.end());
  r.stop = {std::string(1, *letter)};
  auto right = t.undisturbed(r);
  REQUIRE(right->ended().reason == core::finish_reason::stop);
  const auto pieces = t.count_pieces();
  auto s = t.send(r);
  REQUIRE(t.here.run([&] { return *pieces == 2; }, seconds(30)));
  t.workers.front().bus->kill();
  t.add();
  t.finish(s);
  CHECK(t.gateways.front().side->counts().moved == 1);
  CHECK(s->ended().reason == core::finish_reason::stop);
  CHECK(s->ended().output_tokens == right->ended().output_tokens);
  CHECK(text_of(*s) == text_of(*right));
  check_scores(*s, t.right(r));
  s.reset();
  right.reset();
  t.check_empty();
}

TEST_CASE("fleet scores: a job that is cancelled while they are fetched ends with its whole output") {
  scored_fleet t(drawn_seed(503));
  t.net->how.least = t.net->how.most = milliseconds(20);
  const auto pieces = t.count_pieces();
  auto s = t.send(scored_fleet::question(3, 30));
  REQUIRE(t.here.run([&] { return *pieces == 1; }, seconds(30)));
  t.net->how.loss = 1;
  s->cancel();
  REQUIRE(t.here.run([&] { return fleet_town::over(s); }, seconds(1)));
  CHECK(!s->ended().fault);
  CHECK(s->ended().reason == core::finish_reason::length);
  CHECK(s->published() == 30);
  t.net->how = {};
  s.reset();
  t.check_empty();
}

TEST_CASE("fleet scores: who guesses ids hears nothing, and what a stranger answers changes nothing") {
  scored_fleet t(drawn_seed(504));
  t.net->how.least = t.net->how.most = milliseconds(20);
  const auto stranger = t.net->join();
  const wire::subjects subjects("main");
  const auto to = subjects.control_of(t.workers.front().side->name());
  const auto asked = [&](const std::string& frame) {
    std::optional<bool> came;
    stranger->ask(to, frame, milliseconds(250), t.here.get_executor(),
                  [&](actors::bus::answer a) { came = a.how == actors::bus::answer::how::came; });
    REQUIRE(t.here.run([&] { return came.has_value(); }, seconds(1)));
    return *came;
  };
  auto s = t.send(scored_fleet::question(4, 30));
  t.wait(milliseconds(30));
  CHECK(!asked(wire::frame_of(wire::score_wish{{s->id(), 9}, 0})));  // no such attempt
  CHECK(!asked(wire::frame_of(wire::score_wish{{core::job_id{1, 2}, 0}, 0})));
  const auto broken = t.workers.front().side->counts().broken;
  CHECK(!asked(wire::frame_of(wire::score_wish{{s->id(), 0}, 0}).substr(0, 9)));
  stranger->publish(to, wire::frame_of(wire::score_wish{{s->id(), 0}, 0}));  // nobody to answer
  t.wait(milliseconds(300));
  CHECK(t.workers.front().side->counts().broken >= broken + 2);
  stranger->publish(subjects.answers_to(t.gateways.front().side->name()),
                    wire::score_part_of({s->id(), 0}, 0, 0, {}, 4096));
  t.finish(s);
  check_scores(*s, t.right(scored_fleet::question(4, 30)));
  s.reset();
  t.check_empty();
}

}  // namespace weir::tests::fleet_scores_test
