#include "actors/service.h"

#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/actors/service_fixture.h"
#include "tests/support/world.h"

namespace weir::tests::service_test {

TEST_CASE("a job's tokens arrive whole and in order, with how it ended") {
  service_fixture f;
  f.load();
  const auto s = f.submit(ask("hello", 300));
  f.run_to_end(s);
  REQUIRE(s->state() == phase::done);
  CHECK(s->published() == 300);
  CHECK(text_of(*s) == sim_text(7, 300));
  CHECK(s->model() == "sim");
  const auto& how = s->ended();
  CHECK(how.reason == core::finish_reason::length);
  CHECK(std::string(how.status()) == "incomplete");
  CHECK(how.input_tokens == 5);
  CHECK(how.output_tokens == 300);
  for (std::uint32_t i = 1; i < 300; ++i) REQUIRE(s->sampled_at_us(i) >= s->sampled_at_us(i - 1));
}

TEST_CASE("a reader that wakes late finds everything, though the queue holds 127 tokens") {
  service_fixture f("rate=100000,prefill=100000000");
  f.load();
  const auto s = f.submit(ask("hello", 1000));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));  // the owner runs into the full queue meanwhile
  f.run_to_end(s);
  CHECK(text_of(*s) == sim_text(7, 1000));
}

TEST_CASE("a reader that throws keeps the end of a job from no other reader") {
  service_fixture f;
  f.load();
  std::shared_ptr<job_stream> s;
  int told = 0;
  s = f.submit(ask("hello", 5), [&] {
    if (s && s->state() == phase::done) throw std::runtime_error("a reader");
  });
  s->follow([&] { told += s->state() == phase::done; });
  CHECK_THROWS_AS(f.run_to_end(s), std::runtime_error);
  CHECK(told == 1);
}

TEST_CASE("jobs beside each other get what each gets alone") {
  service_fixture f;
  f.load();
  std::vector<std::shared_ptr<job_stream>> all;
  for (std::uint64_t seed = 0; seed < 32; ++seed)
    all.push_back(f.submit(ask("x", 20 + static_cast<int>(seed), seed)));
  for (auto& s : all) f.run_to_end(s);
  for (std::uint64_t seed = 0; seed < 32; ++seed)
    CHECK(text_of(*all[seed]) == sim_text(seed, 20 + static_cast<std::uint32_t>(seed)));
}

TEST_CASE("a stop string cuts the text in the middle of a token, and is shown where the request says so") {
  service_fixture f;
  f.load();
  const auto whole = sim_text(7, 20);
  const auto stop = whole.substr(33, 4);  // begins and ends inside a token
  for (const bool shown : {false, true}) {
    auto r = ask("x", 20);
    r.stop = {stop};
    r.shows_stop = shown;
    const auto s = f.submit(r);
    f.run_to_end(s);
    CHECK(text_of(*s) == whole.substr(0, whole.find(stop) + (shown ? stop.size() : 0)));
    CHECK(s->ended().reason == core::finish_reason::stop);
  }
}

TEST_CASE("cancel ends a job in every state, once, and its pages are free") {
  service_fixture f("rate=200,prefill=2000", [](auto& o) { o.owner.max_batch = 1; });
  f.load();
  int endings = 0;
  std::shared_ptr<job_stream> s;
  const auto count = [&] { endings += s->state() == phase::done; };

  SECTION("before it is tokenised") {
    s = f.submit(ask("x", 100), count);
    s->cancel();
  }
  SECTION("while it waits for a place in the batch") {
    const auto first = f.submit(ask("x", 100000));
    f.await_stats([](const auto& st) { return st.engine.decoding == 1; });
    s = f.submit(ask("x", 100), count);
    f.await_stats([](const auto& st) { return st.engine.queued == 1; });
    s->cancel();
    f.run_to_end(s);
    first->cancel();
    f.run_to_end(first);
  }
  SECTION("in the middle of its prompt") {
    s = f.submit(ask(std::string(20000, 'x'), 100), count);  // ten seconds of prefill
    f.await_stats([](const auto& st) { return st.engine.prefilling == 1; });
    s->cancel();
  }
  SECTION("while it decodes") {
    s = f.submit(ask("x", 100000), count);
    f.run_until([&] { return s->published() > 3; });
    s->cancel();
  }
  SECTION("twice, and again after its end") {
    s = f.submit(ask("x", 100000), count);
    f.run_until([&] { return s->published() > 3; });
    s->cancel();
    s->cancel();
    f.run_to_end(s);
    s->cancel();
  }
  f.run_to_end(s);
  f.await_stats(
      [](const auto& st) { return st.engine.pages_used == 0 && st.engine.decoding + st.engine.queued == 0; });
  CHECK(s->state() == phase::done);
  CHECK(s->ended().reason == core::finish_reason::cancel);
  CHECK(std::string(s->ended().status()) == "cancelled");
  f.io.restart();
  f.io.poll();
  CHECK(endings == 1);
  CHECK(text_of(*s) == sim_text(7, s->published()));
}

TEST_CASE("a stream that nobody holds any more cancels its job") {
  service_fixture f("rate=200");
  f.load();
  auto s = f.submit(ask("x", 1000000));
  f.run_until([&] { return s->published() > 0; });
  s.reset();
  f.await_stats([](const auto& st) { return st.engine.decoding == 0 && st.engine.pages_used == 0; });
}

TEST_CASE("what does not fit the queue is refused, and a place is free again after each ending") {
  service_fixture f("rate=100", [](auto& o) {
    o.owner.max_batch = 2;
    o.owner.queue = 3;
  });
  f.load();
  std::vector<std::shared_ptr<job_stream>> taken;
  for (int i = 0; i < 5; ++i) taken.push_back(f.submit(ask("x", 100000)));
  f.run_until([&] {
    return std::all_of(taken.begin(), taken.end(), [](auto& s) { return s->state() == phase::running; });
  });
  const auto refused = f.submit(ask("x", 1));
  f.run_to_end(refused);
  REQUIRE(refused->state() == phase::refused);
  CHECK(refused->refusal().code == core::errc::overloaded);
  taken.front()->cancel();
  f.run_to_end(taken.front());
  const auto next = f.submit(ask("x", 1));
  f.run_until([&] { return next->state() != phase::pending; });
  CHECK(next->state() == phase::running);
}

TEST_CASE("before its models are loaded a service says so, and is not ready") {
  service_fixture f;
  const auto s = f.submit(ask("x", 1));
  f.run_to_end(s);
  REQUIRE(s->state() == phase::refused);
  CHECK(s->refusal().code == core::errc::unavailable);
  CHECK_FALSE(f.service->ready().ready);
  f.load();
  CHECK(f.service->ready().ready);
}

TEST_CASE("an unknown model is refused by name") {
  service_fixture f;
  f.load();
  auto r = ask("x", 1);
  r.model = "gpt-99";
  const auto s = f.submit(r);
  f.run_to_end(s);
  REQUIRE(s->state() == phase::refused);
  CHECK(s->refusal().code == core::errc::model_not_found);
  CHECK(s->refusal().param == "model");
  CHECK(s->refusal().message.find("gpt-99") != std::string::npos);
}

TEST_CASE("jobs are listed while they live, remembered when they ended, and cancelled by id") {
  service_fixture f("rate=200");
  f.load();
  const auto s = f.submit(ask("x", 100000));
  f.await_stats([](const auto& st) { return st.engine.decoding == 1; });

  std::optional<std::vector<actors::job_view>> list;
  f.service->list_jobs({}, f.io.get_executor(), [&](auto v) { list = std::move(v); });
  f.run_until([&] { return list.has_value(); });
  REQUIRE(list->size() == 1);
  CHECK(list->front().id == s->id());
  CHECK(list->front().state == "decoding");
  CHECK(list->front().model == "sim");
  CHECK(list->front().pages > 0);

  std::optional<std::optional<actors::job_view>> gone;
  f.service->cancel_job({}, s->id(), f.io.get_executor(), [&](auto v) { gone = std::move(v); });
  f.run_until([&] { return gone.has_value(); });
  REQUIRE(gone->has_value());
  CHECK((*gone)->state == "finished");
  CHECK((*gone)->finish_reason == "cancel");
  CHECK(s->state() == phase::done);

  for (const bool known : {true, false}) {
    std::optional<std::optional<actors::job_view>> again;
    f.service->cancel_job({}, known ? s->id() : core::job_id{1, 2}, f.io.get_executor(),
                          [&](auto v) { again = std::move(v); });
    f.run_until([&] { return again.has_value(); });
    CHECK(again->has_value() == known);
  }
}

TEST_CASE("an answer's id cancels all its choices, another choice's id that one alone") {
  service_fixture f("rate=100");
  f.load();
  auto asked = ask("x", 1000000);
  asked.more_inputs.emplace_back(std::string("y"));
  const auto all = f.service->submit(std::move(asked), 2, f.io.get_executor(), [] {});
  REQUIRE(all.size() == 4);
  f.await_stats([](const auto& st) { return st.engine.decoding == 4; });
  const auto cancel = [&](const core::job_id& id) {
    std::optional<std::optional<actors::job_view>> gone;
    f.service->cancel_job({}, id, f.io.get_executor(), [&](auto v) { gone = std::move(v); });
    f.run_until([&] { return gone.has_value(); });
    REQUIRE(gone->has_value());
    CHECK((*gone)->id == id);
    CHECK((*gone)->state == "finished");
    CHECK((*gone)->finish_reason == "cancel");
  };
  cancel(all[2]->id());
  CHECK(all[2]->state() == phase::done);
  for (const int i : {0, 1, 3}) CHECK(all[i]->state() == phase::running);
  all[0]->cancel();  // the first has ended, and its id still names the answer
  f.run_to_end(all[0]);
  cancel(all[0]->id());
  for (const auto& job : all) CHECK(job->state() == phase::done);  // the reply came after the last of them
}

TEST_CASE("draining takes no new job and tells when the last one has ended") {
  service_fixture f("rate=200");
  f.load();
  const auto s = f.submit(ask("x", 50));
  f.run_until([&] { return s->published() > 0; });
  bool idle = false;
  f.service->drain(f.io.get_executor(), [&] { idle = true; });
  const auto late = f.submit(ask("x", 1));
  f.run_to_end(late);
  CHECK(late->state() == phase::refused);
  CHECK_FALSE(idle);
  f.run_until([&] { return idle; });
  CHECK(s->state() == phase::done);
  CHECK(s->ended().output_tokens == 50);
}

TEST_CASE("a job with a deadline ends with timeout") {
  service_fixture f("rate=100");
  f.load();
  auto r = ask("x", 100000);
  r.deadline = std::chrono::milliseconds(80);
  const auto s = f.submit(r);
  f.run_to_end(s);
  CHECK(s->ended().reason == core::finish_reason::timeout);
  CHECK(text_of(*s) == sim_text(7, s->published()));
}

TEST_CASE("a device that fails starts again and its jobs go on, but not twice in a minute") {
  std::mutex lock;
  std::vector<std::string> log;
  service_fixture f("rate=1000,fault=device@40", [&](actors::service_options& o) {
    o.seen = std::make_shared<core::incidents>([&](std::string_view line) {
      const std::lock_guard held(lock);
      log.emplace_back(line);
    });
  });
  f.load();
  const auto goes_on = f.submit(ask("x", 60));
  f.run_to_end(goes_on);
  REQUIRE(goes_on->state() == phase::done);
  CHECK(goes_on->ended().reason == core::finish_reason::length);
  CHECK(goes_on->ended().output_tokens == 60);
  CHECK(text_of(*goes_on) == sim_text(7, 60));
  CHECK(f.service->ready().ready);
  CHECK(f.service->seen().count() == 1);
  f.await_stats([](const auto& now) { return now.engine.continued == 1; });

  const auto fails = f.submit(ask("x", 1000));
  f.run_to_end(fails);
  REQUIRE(fails->state() == phase::done);
  CHECK(fails->ended().reason == core::finish_reason::error);
  CHECK(std::string(fails->ended().status()) == "failed");
  REQUIRE(fails->ended().fault);
  CHECK(text_of(*fails) == sim_text(7, fails->published()));
  f.run_until([&] { return !f.service->ready().ready; });
  CHECK(f.service->ready().reason.find("fault=device@40") != std::string::npos);
  const auto late = f.submit(ask("x", 1000));  // nothing is computed any more
  f.run_to_end(late);
  REQUIRE(late->state() == phase::refused);
  CHECK(late->refusal().code == core::errc::unavailable);
  f.run_until([&] {
    const std::lock_guard held(lock);
    return log.size() >= 3;
  });
  CHECK(f.service->seen().count() == 2);
  const std::lock_guard held(lock);
  REQUIRE(log.size() == 3);
  CHECK(log[0] == "the device: the simulated device failed at step 40, as fault=device@40 asks");
  CHECK(log[1] == "the device: it was started again");
  CHECK(log[2].ends_with("it failed twice within a minute and stays down"));
}

TEST_CASE(
    "eight jobs in a row that end in bad logits are not healthy until one ends well, and jobs are taken all "
    "the while") {
  service_fixture f("rate=10000,fault=sampler@1-8");
  f.load();
  for (int i = 0; i < 8; ++i) {
    f.run_until([&] { return f.service->ready().ready; });
    const auto s = f.submit(ask("x", 5));
    f.run_to_end(s);
    REQUIRE(s->ended().reason == core::finish_reason::error);
  }
  f.run_until([&] { return !f.service->ready().ready; });
  CHECK(f.service->ready().reason == "the last 8 jobs of sim ended in logits that are not finite");
  const auto gone = f.submit(ask("x", 1000000));
  f.run_until([&] { return gone->published() > 0; });
  gone->cancel();
  f.run_to_end(gone);
  CHECK_FALSE(f.service->ready().ready);
  const auto good = f.submit(ask("x", 5));
  f.run_to_end(good);
  CHECK(good->ended().reason == core::finish_reason::length);
  f.run_until([&] { return f.service->ready().ready; });
}

TEST_CASE("texts that the pool has no room for are refused, jobs and routes alike") {
  service_fixture f("rate=5000", [](auto& o) { o.text.queue = 1; });
  f.load();
  std::vector<std::shared_ptr<job_stream>> all;
  int refused = 0, answered = 0;
  const std::string text(1 << 20, 'x');
  const auto hear = [&](const auto& r) {
    ++answered;
    if (r) return;
    ++refused;
    CHECK(r.error().code == core::errc::overloaded);
  };
  f.service->tokenize("sim", text, true, f.io.get_executor(), hear);  // keeps the pool's thread busy
  for (int i = 0; i < 5; ++i) all.push_back(f.submit(ask("x", 3)));
  f.service->tokenize("sim", "x", true, f.io.get_executor(), hear);
  f.service->detokenize("sim", {1}, f.io.get_executor(), hear);
  f.run_until([&] { return answered == 3; });
  CHECK(refused == 2);
  for (const auto& s : all) {
    f.run_to_end(s);
    REQUIRE(s->state() == phase::refused);
    CHECK(s->refusal().code == core::errc::overloaded);
  }
  f.run_until([&] { return f.service->stats().text.tasks == 0; });
  const auto later = f.submit(ask("x", 3));
  f.run_to_end(later);
  CHECK(later->state() == phase::done);
}

TEST_CASE("a device that fails takes every model on it along, and all start again and go on") {
  service_fixture f("rate=1000,fault=device@40", [](auto& o) {
    o.models.push_back({"other", "sim:rate=20"});
    o.owner.models = 2;
  });
  f.load();
  auto to_other = ask("x", 1000);
  to_other.model = "other";
  const auto beside = f.submit(to_other);
  f.run_until([&] { return beside->published() > 0; });
  auto to_faulty = ask("x", 60);
  to_faulty.model = "sim";
  const auto first = f.submit(to_faulty);
  f.run_to_end(first);
  CHECK(first->ended().reason == core::finish_reason::length);
  CHECK(text_of(*first) == sim_text(7, 60));
  CHECK(f.service->ready().ready);
  CHECK(f.service->seen().count() == 1);
  const auto had = beside->published();
  f.run_until([&] { return beside->published() > had; });
  CHECK(text_of(*beside) == sim_text(7, beside->published()));

  // The second time within a minute both stay down, and say why.
  to_faulty.max_tokens = 1000;
  const auto second = f.submit(to_faulty);
  for (const auto& s : {second, beside}) {
    f.run_to_end(s);
    REQUIRE(s->ended().fault);
    CHECK(s->ended().reason == core::finish_reason::error);
    CHECK(s->ended().fault->message.find("fault=device@40") != std::string::npos);
  }
  f.run_until([&] { return !f.service->ready().ready; });
  CHECK(f.service->ready().reason.find("fault=device@40") != std::string::npos);
  CHECK(f.service->ready().reason.find("twice within a minute") != std::string::npos);
  const auto refused = f.submit(to_other);
  f.run_to_end(refused);
  REQUIRE(refused->state() == phase::refused);
  CHECK(refused->refusal().code == core::errc::unavailable);
  CHECK(refused->refusal().message.find("twice within a minute") != std::string::npos);
}

TEST_CASE("a device that fails again after more than a minute is started again") {
  world w(3);
  actors::service_options o;
  o.models.push_back({"sim", "sim:rate=1000,fault=device@50"});
  o.owner.device = "sim";
  const auto service = w.make_service(std::move(o));
  for (std::uint64_t faults = 1; faults <= 4; ++faults) {  // each later in the job than the one before
    const auto s = service->submit(ask("x", 60), w.get_executor(), [] {});
    REQUIRE(w.run([&] { return s->state() == phase::done; }));
    CHECK(s->ended().reason == core::finish_reason::length);
    CHECK(text_of(*s) == sim_text(7, 60));
    CHECK(service->seen().count() == faults);
    bool later = false;
    w.after(std::chrono::seconds(61), [&] { later = true; });
    REQUIRE(w.run([&] { return later; }));
    CHECK(service->ready().ready);
  }
}

namespace {

// A shard with a thread of its own, whose jobs are read, cancelled, deserted or late.
class random_shard {
 public:
  random_shard(actors::service& s, std::uint32_t seed, int lives)
      : service_(s), random_(seed), thread_([this, lives] { run(lives); }) {}

  void join() { thread_.join(); }
  // Runs what waits for the shard, such as news of deserted jobs. REQUIRES: join() has returned
  void poll() {
    io_.restart();
    io_.poll();
  }
  const std::string& wrong() const { return wrong_; }  // empty: nothing

 private:
  struct one {
    std::shared_ptr<job_stream> stream;
    std::uint64_t seed;
    bool may_be_cut;
  };

  void run(int lives) {
    std::vector<one> mine;
    for (int i = 0; i < lives; ++i) {
      const auto seed = random_();
      auto r = ask("x", 1 + static_cast<int>(random_() % 60), seed);
      const bool late = random_() % 6 == 0;
      if (late) r.deadline = std::chrono::milliseconds(1 + random_() % 3);
      mine.push_back({service_.submit(std::move(r), io_.get_executor(), [] {}), seed, late});
      auto& victim = mine[random_() % mine.size()];
      if (random_() % 3 == 0) {
        victim.may_be_cut = true;
        victim.stream->cancel();
      } else if (random_() % 6 == 0) {
        std::swap(victim, mine.back());
        mine.pop_back();  // nobody holds it any more
      } else if (random_() % 8 == 0) {
        victim.may_be_cut = true;
        service_.cancel_job({}, victim.stream->id(), io_.get_executor(), [](const auto&) {});
      }
      if (random_() % 8 == 0) poll();
      if (mine.size() > 100) settle(mine);
    }
    settle(mine);
  }

  void settle(std::vector<one>& mine) {
    for (auto& l : mine) {
      while (l.stream->state() != phase::done && l.stream->state() != phase::refused) {
        io_.restart();
        io_.run_one_for(std::chrono::milliseconds(20));
      }
      if (l.stream->state() == phase::refused) {
        wrong_ = "refused: " + l.stream->refusal().message;
        continue;
      }
      const auto& how = l.stream->ended();
      const bool cut =
          how.reason == core::finish_reason::cancel || how.reason == core::finish_reason::timeout;
      if (cut && !l.may_be_cut) wrong_ = "cut, though nobody asked";
      if (text_of(*l.stream) != sim_text(l.seed, l.stream->published())) wrong_ = "another job's text";
    }
    mine.clear();
  }

  actors::service& service_;
  boost::asio::io_context io_{1};
  std::mt19937 random_;
  std::string wrong_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("random lives on three threads: every job ends once, with the tokens that its seed gives") {
  service_fixture f("rate=1000000,prefill=1000000000", [](auto& o) {
    o.owner.max_batch = 8;
    o.owner.queue = 1000;
    o.owner.audit = true;
  });
  f.load();
  std::vector<std::unique_ptr<random_shard>> shards;
  for (std::uint32_t s = 0; s < 3; ++s) shards.push_back(std::make_unique<random_shard>(*f.service, s, 3334));
  for (auto& s : shards) s->join();
  for (auto& s : shards) CHECK(s->wrong() == "");
  bool idle = false;
  f.service->drain(f.io.get_executor(), [&] { idle = true; });
  f.run_until([&] {
    for (auto& s : shards) s->poll();  // a job that nobody holds ends on its shard, too
    return idle;
  });
  f.await_stats([](const auto& st) { return st.engine.pages_used == 0 && st.engine.queued == 0; });
  CHECK(f.service->ready().reason == "shutting down");  // the books balanced all along
}

TEST_CASE("service: what is being loaded is known until all is loaded") {
  service_fixture f;
  REQUIRE(f.service->loading());
  CHECK(f.service->loading()->total == 0);
  bool loaded = false;
  f.service->load({}, f.io.get_executor(), [&](const auto&) { loaded = true; });
  CHECK(f.service->loading()->model == "sim");
  f.run_until([&] { return loaded; });
  CHECK(!f.service->loading());
}

}  // namespace weir::tests::service_test
