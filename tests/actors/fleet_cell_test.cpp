// What a gateway says of its whole cell: the jobs of other gateways are listed, found and cancelled as its
// own are, by whom they belong to.
#include <catch2/catch.hpp>

#include "actors/cell_jobs.h"
#include "actors/fleet/far_list.h"
#include "core/fleet/list_frame.h"
#include "core/fleet/subjects.h"
#include "tests/actors/fleet_resume_town.h"

namespace weir::tests::fleet_cell_test {
namespace {

namespace wire = core::fleet;
using actors::cell_job;
using actors::cell_jobs;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct cell : resume_town {
  using resume_town::resume_town;

  cell_jobs listed_at(gateway& g, actors::asker who = actors::principal{7, 0}) {
    std::optional<cell_jobs> out;
    actors::list_cell_jobs(*g.service, who, here.get_executor(), [&](cell_jobs j) { out = std::move(j); });
    REQUIRE(here.run([&] { return out.has_value(); }, seconds(10)));
    return *out;
  }
  cell_job asked_at(gateway& g, const core::job_id& id, actors::asker who, bool cancel) {
    std::optional<cell_job> out;
    auto done = [&](cell_job j) { out = std::move(j); };
    cancel ? actors::cancel_cell_job(*g.service, who, id, here.get_executor(), done)
           : actors::find_cell_job(*g.service, who, id, here.get_executor(), done);
    REQUIRE(here.run([&] { return out.has_value(); }, seconds(10)));
    return *out;
  }
  cell_job seen_at(gateway& g, const core::job_id& id, actors::asker who = actors::principal{7, 0}) {
    return asked_at(g, id, who, false);
  }
  cell_job cancelled_at(gateway& g, const core::job_id& id, actors::asker who = actors::principal{7, 0}) {
    return asked_at(g, id, who, true);
  }
  std::uint64_t untold() {
    wait(milliseconds(300));  // workers show their counts now and then
    std::uint64_t n = 0;
    for (const auto& w : workers) n += w.side->counts().silent;
    return n;
  }
};

actors::request of_user(std::uint64_t key, std::uint64_t user, std::uint64_t seed) {
  auto r = resume_town::asked(400, seed);
  r.who = {key, user};
  return r;
}

}  // namespace

TEST_CASE("each gateway lists the jobs of all, each once, as their workers have them") {
  cell t(91, 2, 3);
  std::vector<std::shared_ptr<job_stream>> mine, other;
  for (std::uint64_t i = 0; i < 6; ++i) {
    mine.push_back(t.send(t.first(), t.asked(400, i)));
    other.push_back(t.send(t.other(), t.asked(400, 10 + i)));
  }
  t.wait(seconds(1));
  const auto at_first = t.listed_at(t.first()), at_other = t.listed_at(t.other());
  REQUIRE(at_first.jobs.size() == 12);
  REQUIRE(at_other.jobs.size() == 12);
  CHECK(at_first.silent == 0);
  CHECK(at_first.left_out == 0);
  std::set<std::string> ids;
  for (const auto& j : at_first.jobs) {
    ids.insert(j.id.text());
    CHECK(j.state == "decoding");
    CHECK(j.model == "sim");
    CHECK(j.prompt_tokens == 5);
    CHECK(j.output_tokens > 10);
    CHECK(j.pages > 0);
    CHECK(j.age_s > 0.5);
    CHECK(j.finish_reason.empty());
  }
  CHECK(ids.size() == 12);
  t.wait(milliseconds(100));
  CHECK(t.first().side->counts().lists == 1);
}

TEST_CASE("a job of another gateway is found as it stands, and is kept for a while after its end") {
  cell t(92);
  const auto s = t.running(t.asked(100, 5));
  const auto runs = t.seen_at(t.other(), s->id());
  REQUIRE(runs.job.has_value());
  CHECK(runs.elsewhere);
  CHECK(runs.job->state == "decoding");
  CHECK(!t.seen_at(t.first(), s->id()).elsewhere);
  t.finish(s);
  t.wait(milliseconds(500));
  const auto ended = t.seen_at(t.other(), s->id());
  REQUIRE(ended.job.has_value());
  CHECK(ended.job->state == "finished");
  CHECK(ended.job->finish_reason == "length");
  CHECK(ended.job->output_tokens == 100);
  CHECK(t.listed_at(t.other()).jobs.size() == 1);
  t.wait(seconds(10));
  CHECK(!t.seen_at(t.other(), s->id()).job);
  CHECK(t.listed_at(t.other()).jobs.empty());
  CHECK(t.seen_at(t.first(), s->id()).job->finish_reason == "length");  // of the gateway's own last lines
}

TEST_CASE("a job belongs to its key and its user at every gateway, and an admin sees all") {
  cell t(93);
  const auto of_key = t.running(of_user(7, 0, 1)), of_one = t.running(of_user(7, 5, 2)),
             of_another = t.running(of_user(8, 0, 3));
  const auto sees = [&](actors::asker who, std::initializer_list<const job_stream*> jobs) {
    std::set<std::string> right, is;
    for (const auto* j : jobs) right.insert(j->id().text());
    for (const auto& j : t.listed_at(t.other(), who).jobs) is.insert(j.id.text());
    CHECK(is == right);
    for (const auto* j : {of_key.get(), of_one.get(), of_another.get()})
      CHECK(t.seen_at(t.other(), j->id(), who).job.has_value() == right.contains(j->id().text()));
  };
  sees(actors::principal{7, 0}, {of_key.get(), of_one.get()});
  sees(actors::principal{7, 5}, {of_one.get()});
  sees(actors::principal{7, 6}, {});
  sees(actors::principal{8, 0}, {of_another.get()});
  sees(actors::principal{9, 0}, {});
  sees(std::nullopt, {of_key.get(), of_one.get(), of_another.get()});
  for (const actors::asker& who : {actors::asker(actors::principal{8, 0}), actors::asker({7, 5})})
    CHECK(!t.cancelled_at(t.other(), of_key->id(), who).job);
  t.wait(seconds(1));
  CHECK(!t.over(of_key));
}

TEST_CASE("questions for jobs of other keys are counted, and those for jobs elsewhere are not") {
  cell t(94, 2, 3);
  const auto s = t.running(t.asked(300, 1));
  CHECK(t.seen_at(t.other(), s->id()).job);
  CHECK(t.found_at(t.other(), s->id()).how == actors::job_search::end::found);
  CHECK(!t.seen_at(t.other(), {1, 2}).job);
  CHECK(t.untold() == 0);  // two of three workers did not have it
  CHECK(!t.seen_at(t.first(), s->id(), actors::principal{8, 0}).job);
  CHECK(t.untold() == 1);
  CHECK(t.found_at(t.first(), s->id(), {8, 0}).how == actors::job_search::end::nothing);
  CHECK(t.untold() > 1);
}

TEST_CASE("a cancel reaches a job of another gateway, whose stream ends as by its own client's") {
  cell t(95);
  const auto s = t.running(t.asked(4000, 5)), stays = t.running(t.asked(300, 6));
  const auto gone = t.cancelled_at(t.other(), s->id());
  REQUIRE(gone.job.has_value());
  CHECK(gone.job->state == "finished");
  CHECK(gone.job->finish_reason == "cancel");
  CHECK(gone.job->output_tokens >= 20);
  t.finish(s);
  CHECK(s->ended().reason == core::finish_reason::cancel);
  CHECK(text_of(*s) == sim_text(5, 4000).substr(0, text_of(*s).size()));
  t.finish(stays);
  CHECK(text_of(*stays) == sim_text(6, 300));
  t.check_empty({&t.first(), &t.other()});
  CHECK(t.first().side->counts().moved == 0);
}

// Its worker forgets it at once.
TEST_CASE("a cancel of a job that nobody can resume says that the job has ended") {
  cell t(102);
  auto r = t.asked(4000, 5);
  r.resumable = nullptr;
  const auto s = t.running(std::move(r));
  const auto gone = t.cancelled_at(t.other(), s->id());
  REQUIRE(gone.job.has_value());
  CHECK(gone.job->id == s->id());
  CHECK(gone.job->state == "finished");
  CHECK(gone.job->finish_reason == "cancel");
  CHECK(gone.elsewhere);
  t.finish(s);
  CHECK(s->ended().reason == core::finish_reason::cancel);
  CHECK(!t.seen_at(t.other(), s->id()).job);
}

TEST_CASE("a cancel of an answer ends all its choices, at whichever worker they are") {
  cell t(96, 2, 4);
  auto r = t.asked(4000, 5);
  r.sampling.seed.reset();
  auto all = t.first().service->submit(std::move(r), 4, t.here.get_executor(), [] {});
  REQUIRE(t.here.run([&] { return std::ranges::all_of(all, [](auto& s) { return s->published() > 5; }); },
                     seconds(10)));
  const auto gone = t.cancelled_at(t.other(), all[0]->id());
  REQUIRE(gone.job.has_value());
  CHECK(gone.job->id == all[0]->id());
  for (const auto& s : all) {
    t.finish(s);
    CHECK(s->ended().reason == core::finish_reason::cancel);
  }
}

TEST_CASE("lists and cancels come through where one message of ten is lost") {
  net_manners lossy;
  lossy.loss = 0.1;
  lossy.twice = 0.1;
  cell t(97, 2, 2, "rate=50", lossy);
  for (std::uint64_t i = 0; i < 10; ++i) {
    const auto s = t.running(t.asked(4000, i));
    cell_job gone;
    for (int tries = 0; tries < 5 && !gone.job; ++tries) gone = t.cancelled_at(t.other(), s->id());
    REQUIRE(gone.job.has_value());
    CHECK(gone.job->finish_reason == "cancel");
    t.finish(s);
    CHECK(s->ended().reason == core::finish_reason::cancel);
  }
  t.check_empty({&t.first(), &t.other()});
}

TEST_CASE("a job that went on at another gateway is shown as it is there") {
  cell t(98);
  const auto s = t.running(t.asked(200, 5));
  const auto on = t.resumed_at(t.other(), s->id());
  t.finish(s);
  CHECK(s->ended().fault->code == core::errc::adopted);
  const auto seen = t.seen_at(t.first(), s->id());
  CHECK(seen.elsewhere);
  CHECK(seen.job->state == "decoding");
  REQUIRE(t.listed_at(t.first()).jobs.size() == 1);
  CHECK(t.listed_at(t.first()).jobs.front().finish_reason.empty());
  t.finish(on);
  t.wait(milliseconds(200));
  CHECK(t.seen_at(t.first(), s->id()).job->finish_reason == "length");
}

TEST_CASE("a worker that does not answer is counted, and what the others have is shown") {
  cell t(99, 2, 2);
  std::vector<std::shared_ptr<job_stream>> all;
  for (std::uint64_t i = 0; i < 4; ++i) all.push_back(t.send(t.first(), t.asked(2000, i)));
  t.wait(seconds(1));
  t.workers.front().bus->stall(true);
  const auto began = t.here.now();
  const auto seen = t.listed_at(t.other());
  CHECK(t.here.now() - began <= milliseconds(450));
  CHECK(seen.silent == 1);
  CHECK(seen.jobs.size() < 4);
  CHECK(!seen.jobs.empty());
  const auto unknown = t.seen_at(t.other(), {1, 2});
  CHECK(!unknown.job);
  CHECK(unknown.silent == 1);
  t.other().bus->cut(true);
  t.wait(milliseconds(100));
  CHECK(t.listed_at(t.other()).silent >= 1);
  t.other().bus->cut(false);
  t.workers.front().bus->stall(false);
}

TEST_CASE("a gateway without workers, and a service without a fleet, have their own jobs alone") {
  cell t(100, 1, 0);
  CHECK(t.listed_at(t.first()).jobs.empty());
  CHECK(!t.seen_at(t.first(), {1, 2}).job);
  auto& w = t.add_worker(t.quick());
  const auto s = w.service->submit(t.asked(20, 4), t.here.get_executor(), [] {});
  t.finish(s);
  std::optional<cell_jobs> own;
  actors::list_cell_jobs(*w.service, {}, t.here.get_executor(), [&](cell_jobs j) { own = std::move(j); });
  REQUIRE(t.here.run([&] { return own.has_value(); }, seconds(1)));
  REQUIRE(own->jobs.size() == 1);
  CHECK(own->jobs.front().finish_reason == "length");
}

// A stranger may say anything and hears nothing.
TEST_CASE("who invents answers to a question, or asks without end, moves nothing") {
  cell t(101);
  const auto s = t.running(t.asked(4000, 5));
  const auto stranger = t.net->join();
  const wire::subjects names{"main"};
  const auto& first = t.first().side->name();
  const auto& worker = t.workers.front().side->name();
  std::optional<cell_jobs> out;
  actors::list_cell_jobs(*t.other().service, actors::principal{7, 0}, t.here.get_executor(),
                         [&](cell_jobs j) { out = std::move(j); });
  for (std::uint64_t i = 0; i < 100; ++i) {
    wire::listed_job invented;
    invented.gateway = first;
    stranger->publish(names.answers_to(t.other().side->name()),
                      wire::listed_frames(i, worker, {invented}, 4096).front());
    wire::job_question q;
    q.question = i;
    q.gateway = first;
    q.id = {i, i};
    q.cancel = true;
    stranger->publish(names.finds(), wire::frame_of(q));
  }
  REQUIRE(t.here.run([&] { return out.has_value(); }, seconds(1)));
  REQUIRE(out->jobs.size() == 1);
  CHECK(out->jobs.front().id == s->id());
  t.wait(milliseconds(100));
  CHECK(t.other().side->counts().void_news >= 100);
  const auto before = t.workers.front().side->counts().listed;
  const auto until = t.here.now() + seconds(1);
  wire::job_question all;
  all.gateway = t.name();
  while (t.here.now() < until) {
    for (int i = 0; i < 5; ++i) stranger->publish(names.finds(), wire::frame_of(all));
    t.wait(milliseconds(2));
  }
  t.wait(milliseconds(500));
  const auto listed = t.workers.front().side->counts().listed - before;
  CHECK(listed >= 256);
  CHECK(listed <= 3 * 256);
  CHECK(!t.over(s));
}

TEST_CASE("questions are shared, bounded in number, and leave nothing behind") {
  const auto memory = std::make_shared<core::memory_account>();
  actors::fleet::far_lists lists(memory, "gggggggggggggggg");
  const core::time_point now{seconds(1000)};
  world w(1);
  unsigned answers = 0;
  const auto ask = [&](std::uint64_t key, core::job_id id) {
    return lists.begin({actors::principal{key, 0}, id, false, w.get_executor(), [&](auto) { ++answers; }},
                       id.lo, {"wwwwwwwwwwwwwwww"}, now);
  };
  using begun = actors::fleet::far_lists::begun;
  CHECK(ask(1, {0, 1}) == begun::asks);
  CHECK(ask(1, {0, 1}) == begun::joins);
  std::uint64_t open = 1;
  while (ask(1, {0, open + 1}) == begun::asks) ++open;
  CHECK(open == actors::fleet::far_lists::most_of_a_key);
  for (std::uint64_t key = 2; key < 100; ++key)
    for (std::uint64_t i = 0; i < 20; ++i)
      if (ask(key, {key, 1000 * key + i}) == begun::asks) ++open;
  CHECK(open == actors::fleet::far_lists::most);
  CHECK(memory->used() > 0);
  CHECK(lists.look(now).size() == open);
  CHECK(lists.look(now).empty());
  CHECK(lists.look(now + milliseconds(150)).size() == open);
  CHECK(lists.look(now + milliseconds(500)).empty());
  CHECK(lists.empty());
  CHECK(memory->used() == 0);
  w.run([&] { return answers == open + 1; }, seconds(1));
  CHECK(answers == open + 1);
}

}  // namespace weir::tests::fleet_cell_test
