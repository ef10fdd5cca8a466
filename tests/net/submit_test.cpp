// What a key lets its jobs do, in virtual time: priorities, models, unfinished jobs, tokens a minute.
#include "net/submit.h"

#include <map>

#include "tests/support/world.h"

namespace weir::tests::submit_test {

using namespace weir::net;
using namespace std::chrono_literals;
using phase = actors::job_stream::phase;
using kind = key_refusal::kind;

namespace {

// A service in virtual time, and the keys of a file.
struct key_world {
  explicit key_world(std::string_view file, const std::function<void(actors::service_options&)>& change = {},
                     std::uint64_t seed = 1)
      : here(seed), bearers(*parse_api_keys(file, "F"), "") {
    actors::service_options o;
    o.owner.device = "sim";
    o.owner.max_batch = 64;
    o.owner.queue = 1000;
    o.models.push_back({"sim", "sim:rate=100,prefill=100000000"});
    if (change) change(o);
    service = here.make_service(std::move(o));
  }

  bearer as(std::string_view key) const { return *bearers.judge(key, 0); }
  auto submit(const bearer& from, actors::request r, std::uint32_t n = 1) {
    return submit_as(*service, from, std::move(r), n, here.get_executor(), [] {});
  }
  static actors::request ask(std::uint32_t prompt, std::int64_t max_tokens) {
    actors::request r;
    r.input = std::string(prompt, 'x');
    r.max_tokens = max_tokens;
    return r;
  }
  void run_until_ended(const std::shared_ptr<actors::job_stream>& s) {
    REQUIRE(here.run([&] { return s->state() == phase::done || s->state() == phase::refused; }));
  }
  void pass(core::duration d) {
    bool over = false;
    here.after(d, [&] { over = true; });
    REQUIRE(here.run([&] { return over; }));
  }
  std::vector<actors::job_view> jobs() {
    std::optional<std::vector<actors::job_view>> all;
    service->list_jobs({}, here.get_executor(), [&](auto v) { all = std::move(v); });
    REQUIRE(here.run([&] { return all.has_value(); }));
    return *all;
  }

  world here;
  std::unique_ptr<actors::service> service;
  known_bearers bearers;
};

}  // namespace

TEST_CASE("submit: the priority of a key is that of its jobs, and a request may only lower it") {
  key_world w("five priority=5\nfree\n");
  const auto priority_of = [&](const char* key, std::optional<int> asked) {
    auto r = w.ask(1, 100000);
    r.priority = asked;
    const auto s = w.submit(w.as(key), r);
    REQUIRE(s.has_value());
    const auto id = s->front()->id();
    for (int tries = 0; tries < 1000; ++tries) {  // until the owner has published the job
      for (const auto& j : w.jobs())
        if (j.id == id && j.state == "decoding") return j.priority;
      w.pass(10ms);
    }
    FAIL("the job never ran");
    return 0;
  };
  CHECK(priority_of("five", std::nullopt) == 5);
  CHECK(priority_of("five", 5) == 5);
  CHECK(priority_of("five", -7) == -7);
  CHECK(priority_of("free", std::nullopt) == 0);
  CHECK(priority_of("free", 9) == 9);
  auto over = w.ask(1, 1);
  over.priority = 6;
  const auto no = w.submit(w.as("five"), over);
  REQUIRE(no.has_error());
  CHECK(no.error().why == kind::field);
  CHECK(no.error().param == "priority");
  CHECK(no.error().message == "priority must be at most 5 with this key, not 6");
}

TEST_CASE("submit: a key is judged by the model behind an alias") {
  key_world w("a models=a\nfree\n", [](actors::service_options& o) {
    o.models.clear();
    for (const char* name : {"a", "b"}) o.models.push_back({name, "sim:rate=1000,prefill=1000000"});
    o.aliases = {{"also-a", "a"}, {"also-b", "b"}, {"later", "c"}};
  });
  const auto outcome_of = [&](const char* key, const char* model) -> std::string {
    auto r = w.ask(1, 1);
    r.model = model;
    const auto s = w.submit(w.as(key), r);
    if (!s) return s.error().why == kind::model ? "forbidden" : s.error().message;
    w.run_until_ended(s->front());
    return s->front()->state() == phase::done ? s->front()->model() : s->front()->refusal().message;
  };
  CHECK(outcome_of("a", "also-a") == "a");
  CHECK(outcome_of("a", "also-b") == "forbidden");
  CHECK(outcome_of("free", "also-b") == "b");
  CHECK(outcome_of("free", "later").find("no model is called 'c'") == 0);
}

TEST_CASE("submit: a key has its models alone, and without a name the only one that it may use") {
  key_world w("a models=a\nb models=b,c,none\nnone models=none\nfree\n", [](actors::service_options& o) {
    o.models.clear();
    for (const char* name : {"a", "b", "c"}) o.models.push_back({name, "sim:rate=1000,prefill=1000000"});
  });
  const auto outcome_of = [&](const char* key, const char* model) -> std::string {
    auto r = w.ask(1, 1);
    r.model = model;
    const auto s = w.submit(w.as(key), r);
    if (!s) {
      CHECK(s.error().param == "model");
      if (s.error().why == kind::model) return "forbidden";
      CHECK(s.error().why == kind::no_model);
      return s.error().message;
    }
    w.run_until_ended(s->front());
    return s->front()->state() == phase::done ? s->front()->model() : s->front()->refusal().param;
  };
  CHECK(outcome_of("a", "a") == "a");
  CHECK(outcome_of("a", "") == "a");
  CHECK(outcome_of("a", "b") == "forbidden");
  CHECK(outcome_of("a", "nobody's") == "forbidden");  // whether it is served or not
  CHECK(outcome_of("b", "c") == "c");
  CHECK(outcome_of("b", "a") == "forbidden");
  CHECK(outcome_of("b", "") == "model is missing; this key may use b, c, none");
  CHECK(outcome_of("b", "none") == "no model is called 'none'");  // models of other keys are not named
  CHECK(outcome_of("none", "") == "model is missing; this key may use none");
  CHECK(outcome_of("free", "") == "model");  // no model is named: the service's error
  CHECK(outcome_of("free", "c") == "c");
}

TEST_CASE("submit: a key has so many unfinished jobs, choices and its users' among them, and no more") {
  key_world w("three jobs=3\nfree\n");
  const auto key = w.as("three");
  bearer user = key;
  user.token.emplace();
  user.who.user = 7;
  auto two = w.submit(key, w.ask(1, 100), 2);
  const auto one = w.submit(user, w.ask(1, 50));
  REQUIRE((two && one));
  for (const bearer& from : {key, user}) {
    const auto no = w.submit(from, w.ask(1, 1));
    REQUIRE(no.has_error());
    CHECK(no.error().why == kind::limit);
    CHECK(no.error().retry_after == 1s);
    CHECK(no.error().message == "this key has at most 3 unfinished jobs");
  }
  CHECK(w.submit(w.as("free"), w.ask(1, 1)).has_value());
  const auto never = w.submit(key, w.ask(1, 1), 4);
  REQUIRE(never.has_error());
  CHECK(never.error().why == kind::field);
  CHECK(never.error().param == "n");

  w.run_until_ended(one->front());
  auto again = w.submit(key, w.ask(1, 1000));
  CHECK(again.has_value());
  CHECK(w.submit(key, w.ask(1, 1)).has_error());
  two->pop_back();  // cancels one choice
  w.pass(1s);
  CHECK(w.submit(key, w.ask(1, 1)).has_value());
}

TEST_CASE("submit: tokens a minute are refused until exactly the time that the refusal names") {
  key_world w("k tokens_per_min=600\n");
  const auto key = w.as("k");
  const auto used = w.submit(key, w.ask(500, 400));
  REQUIRE(used.has_value());
  w.run_until_ended(used->front());  // 500 and 400 in 4 s: some 260 in debt
  const auto no = w.submit(key, w.ask(1, 1));
  REQUIRE(no.has_error());
  CHECK(no.error().why == kind::limit);
  CHECK(no.error().message == "this key may use 600 tokens a minute, and has used them");
  const auto wait = no.error().retry_after;
  CHECK(wait > 20s);
  CHECK(wait < 30s);
  w.pass(wait - 2ms);
  CHECK(w.submit(key, w.ask(1, 1)).has_error());
  w.pass(2ms);
  CHECK(w.submit(key, w.ask(1, 1)).has_value());
}

TEST_CASE(
    "submit: a key that asks whenever it may uses its tokens a minute, and another is served beside it") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    key_world w("greedy tokens_per_min=6000 name=greedy\nfree name=free\n", {}, seed);
    const auto greedy = w.as("greedy"), free = w.as("free");
    const auto end = w.here.now() + 10min;
    std::shared_ptr<actors::job_stream> last;
    unsigned begun = 0, refused = 0, others = 0;
    while (w.here.now() < end) {
      const auto prompt = 1 + static_cast<std::uint32_t>(w.here.random() % 300);
      const auto asked =
          w.submit(greedy, w.ask(prompt, 1 + static_cast<std::int64_t>(w.here.random() % 300)));
      if (asked) {
        ++begun;
        w.run_until_ended(asked->front());
      } else {
        ++refused;
        w.pass(asked.error().retry_after);
      }
      if (w.here.random() % 10 == 0) {
        const auto other = w.submit(free, w.ask(1, 10));
        REQUIRE(other.has_value());
        w.run_until_ended(other->front());
        others += other->front()->ended().output_tokens;
      }
    }
    const auto all = w.bearers.counts().all();
    const auto& g = *all.at("greedy");
    const auto tokens = g.prompt_tokens() + g.output_tokens();
    CHECK(tokens <= 6000 * 11 + 600);  // ten minutes, a full bucket, and what one job still used
    CHECK(tokens >= 6000 * 10);
    CHECK(g.jobs() == begun);
    CHECK(refused > 100);
    CHECK(all.at("free")->output_tokens() == others);
  }
}

TEST_CASE("submit: of two keys that flood a full server each gets half, whatever the one asks") {
  key_world w("loud name=loud\nquiet name=quiet\n",
              [](actors::service_options& o) { o.owner.max_batch = 1; });
  std::vector<std::pair<std::string, std::shared_ptr<actors::job_stream>>> all;
  const auto ask = [&](const char* key) {
    auto s = w.submit(w.as(key), w.ask(1, 10));
    REQUIRE(s.has_value());
    all.emplace_back(key, s->front());
  };
  for (int i = 0; i < 100; ++i) ask("loud");
  w.pass(1ms);
  for (int i = 0; i < 20; ++i) ask("quiet");
  const auto ended = [&](std::string_view key) {
    return std::ranges::count_if(
        all, [&](const auto& j) { return j.first == key && j.second->state() == phase::done; });
  };
  REQUIRE(w.here.run([&] { return ended("quiet") == 20; }));
  CHECK(ended("loud") >= 19);
  CHECK(ended("loud") <= 22);
}

TEST_CASE("submit: a key that has left the file begins nothing, and the others go on") {
  key_world w("first jobs=1\nsecond name=two\n");
  const auto first = w.as("first"), second = w.as("second");
  const auto running = w.submit(second, w.ask(1, 100));
  w.bearers.replace(*parse_api_keys("second name=zwei tokens_per_min=600\nthird\n", "F"), w.here.now());
  const auto no = w.submit(first, w.ask(1, 1));
  REQUIRE(no.has_error());
  CHECK(no.error().why == kind::unknown_key);
  const auto later = w.submit(second, w.ask(1, 30));
  CHECK(later.has_value());
  w.run_until_ended(running->front());
  CHECK(running->front()->ended().reason == core::finish_reason::length);
  const auto all = w.bearers.counts().all();
  CHECK(all.at("two")->output_tokens() == 100);  // a job counts for the name that its key had
  CHECK(all.at("zwei")->jobs() == 1);
  CHECK(w.as("second").key->tokens_left(w.here.now())->limit == 600);
}

TEST_CASE("submit: a refusal over HTTP has the status, the code and the exact time") {
  key_refusal no{kind::limit, "later"};
  no.retry_after = 1500ms;
  const auto later = error_reply(no);
  CHECK(later.status == 429);
  CHECK(later.body.find(R"("code":"rate_limited")") != std::string::npos);
  const std::map<std::string, std::string> headers(later.headers.begin(), later.headers.end());
  CHECK(headers.at("Retry-After") == "2");
  CHECK(headers.at("retry-after-ms") == "1500");
  CHECK(error_reply(key_refusal{kind::unknown_key, ""}).status == 401);
  CHECK(error_reply(key_refusal{kind::model, "", "model"}).status == 403);
  CHECK(error_reply(key_refusal{kind::field, "", "n"}).status == 400);
}

TEST_CASE("submit: headers say what is left of the limits that a key has") {
  key_world w("both jobs=2 tokens_per_min=600\njobs jobs=5\nfree\n");
  const auto both = w.as("both");
  const auto job = w.submit(both, w.ask(100, 1000));
  w.pass(2s);
  const auto left = rate_limit_headers(both, w.here.now());
  const std::map<std::string, std::string> now(left.begin(), left.end());
  CHECK(now.size() == 6);
  CHECK(now.at("x-ratelimit-limit-requests") == "2");
  CHECK(now.at("x-ratelimit-remaining-requests") == "1");
  CHECK(now.at("x-ratelimit-reset-requests") == "1s");
  CHECK(now.at("x-ratelimit-limit-tokens") == "600");
  CHECK(std::stoi(now.at("x-ratelimit-remaining-tokens")) == Approx(600 - 300 + 20).margin(5));
  CHECK(now.at("x-ratelimit-reset-tokens").starts_with("2"));  // some 28 s
  const auto some = rate_limit_headers(w.as("jobs"), w.here.now());
  CHECK(some.size() == 3);
  CHECK(some[2] == std::pair<std::string, std::string>("x-ratelimit-reset-requests", "0s"));
  CHECK(rate_limit_headers(w.as("free"), w.here.now()).empty());
  CHECK(rate_limit_headers(bearer{}, w.here.now()).empty());
}

TEST_CASE("submit: times in headers are written as OpenAI writes them") {
  CHECK(duration_text(0ns) == "0s");
  CHECK(duration_text(1ns) == "1ms");
  CHECK(duration_text(17ms) == "17ms");
  CHECK(duration_text(1s) == "1s");
  CHECK(duration_text(1500ms) == "1.5s");
  CHECK(duration_text(59'999'999'999ns) == "1m0s");
  CHECK(duration_text(6min) == "6m0s");
  CHECK(duration_text(61'010ms) == "1m1.01s");
  CHECK(duration_text(25h + 1ms) == "25h0m0.001s");
}

TEST_CASE("submit: a key's flood of texts delays another key's by one text, and counts as its own jobs") {
  key_world w("a jobs=40\nb\n");
  const auto a = w.as("a"), b = w.as("b");
  std::vector<std::string> done;
  const auto tokenise = [&](const bearer& from, const std::string& name, std::size_t bytes) {
    return begin_text(from, w.service->now(), [&](const actors::text_client& client) {
      w.service->tokenize(
          "sim", std::string(bytes, 'x'), true, w.here.get_executor(),
          [&done, name](const auto&) { done.push_back(name); }, client);
    });
  };
  for (int i = 0; i < 40; ++i) CHECK_FALSE(tokenise(a, "a", 100'000));
  const auto no = tokenise(a, "a", 1);
  REQUIRE(no);
  CHECK(no->why == kind::limit);
  CHECK_FALSE(tokenise(b, "b", 1));
  REQUIRE(w.here.run([&] { return std::ranges::find(done, "b") != done.end(); }));
  CHECK(a.key->jobs_left()->left < 40);
  REQUIRE(w.here.run([&] { return done.size() == 41; }));
  w.pass(1ms);
  CHECK(a.key->jobs_left()->left == 40);
}

}  // namespace weir::tests::submit_test
