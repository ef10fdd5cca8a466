// Frames of a fleet: what goes in comes out, and nothing that is cut is taken for whole.
#include <catch2/catch.hpp>
#include <random>

#include "core/fleet/control_frame.h"
#include "core/fleet/fleet_board.h"
#include "core/fleet/job_frame.h"
#include "core/fleet/resume_part.h"
#include "core/fleet/score_frame.h"
#include "core/fleet/token_frame.h"
#include "core/grammar/calls.h"
#include "core/sample/dry.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::frames_test {
namespace {

using namespace weir::core;
using namespace weir::core::fleet;

const std::string gateway = "abcdefgh234567ab", worker = "wwwwwwww22222222";
const time_point now{std::chrono::seconds(1000)};

class dice {
 public:
  explicit dice(std::uint64_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool coin() { return below(2) == 0; }
  std::vector<token_id> tokens(std::size_t most) {
    std::vector<token_id> out(below(most + 1));
    for (auto& id : out) id = static_cast<token_id>(below(200'000));
    return out;
  }
  std::vector<std::string> texts(std::size_t most, std::size_t longest) {
    std::vector<std::string> out(below(most + 1));
    for (auto& s : out)
      for (std::size_t n = 1 + below(longest); s.size() < n;) s += static_cast<char>(below(256));
    return out;
  }

 private:
  std::mt19937_64 random_;
};

// Sets a field of sampling to a value of its range.
struct any_value {
  dice& d;
  template <class T>
  requires std::is_floating_point_v<T>
  void set(const sampling_field& f, T& v) {
    v = static_cast<T>(f.range.low +
                       (f.range.high - f.range.low) * static_cast<double>(d.below(1001)) / 1000);
    if (f.range.above_low && v == static_cast<T>(f.range.low)) v = static_cast<T>(f.range.high);
  }
  void set(const sampling_field& f, std::uint32_t& v) {
    v = static_cast<std::uint32_t>(d.below(2) + static_cast<std::uint64_t>(std::max(0.0, f.range.low)));
  }
  void set(const sampling_field&, std::int32_t& v) { v = static_cast<std::int32_t>(d.below(50)) - 1; }
  void set(const sampling_field&, std::uint64_t& v) { v = d.below(UINT64_MAX); }
  void set(const sampling_field&, bool& v) { v = d.coin(); }
  void set(const sampling_field&, token_set& v) { v = token_set(d.tokens(20)); }
  void set(const sampling_field&, shared_list<token_id>& v) {
    v = std::vector<token_id>{2, 5, 6, 3, 7, 8, 9};
  }
  void set(const sampling_field&, shared_list<std::pair<token_id, float>>& v) {
    v = std::vector<std::pair<token_id, float>>{{3, 1.5f}, {4, -100.0f}};
  }
  void set(const sampling_field&, std::shared_ptr<const dry_breakers>& v) {
    auto b = std::make_shared<dry_breakers>();
    b->texts = {"\n", "**"};
    v = b;
  }
};

std::shared_ptr<const grammar::constraint_text> any_constraint(dice& d) {
  auto c = std::make_shared<grammar::constraint_text>();
  c->what = static_cast<grammar::constraint_text::kind>(d.below(6));
  c->text = "{\"type\":\"object\"}";
  c->choices = d.texts(3, 10);
  c->strict = d.coin();
  if (c->what == grammar::constraint_text::kind::answer) {
    auto r = std::make_shared<grammar::call_rules>();
    r->format = "hermes";
    r->tools.tools.push_back({.name = "look", .parameters = "{}", .param = "tools[0]", .strict = d.coin()});
    r->tools.how = tool_wishes::choice::required;
    r->max_reasoning_tokens = 12;
    if (d.coin()) r->text.emplace().choices = {"yes", "no"};
    c->answer = r;
  }
  return c;
}

job_order any_order(dice& d) {
  job_order o;
  o.attempt = static_cast<std::uint8_t>(d.below(256));
  o.gateway = gateway;
  o.slot = static_cast<std::uint32_t>(d.below(UINT32_MAX));
  o.model = "chat";
  o.engine = d.below(100);
  o.may_pause = d.coin();
  o.arithmetic = d.below(UINT64_MAX);
  job& j = o.job;
  j.id = {d.below(UINT64_MAX), d.below(UINT64_MAX)};
  auto prompt = d.tokens(300);
  prompt.push_back(1);
  j.prompt = prompt;
  j.max_tokens = 400 + static_cast<std::uint32_t>(d.below(100));
  j.min_tokens = static_cast<std::uint32_t>(d.below(400));
  j.spoken = d.tokens(100);
  j.max_repeats = d.coin() ? 0 : 5;
  j.shifts = d.coin();
  j.ignore_eos = d.coin();
  j.shows_stop = d.coin();
  if (d.coin()) j.top_logprobs = static_cast<std::uint32_t>(d.below(21));
  j.force = static_cast<grammar::forcing>(d.below(3));
  j.cache_salt = "salt";
  j.priority = static_cast<int>(d.below(11)) - 5;
  j.key = d.below(UINT64_MAX);
  j.created = now - std::chrono::microseconds(d.below(1'000'000));
  if (d.coin()) j.deadline = now + std::chrono::microseconds(d.below(1'000'000));
  j.stop_token_ids = token_set(d.tokens(10));
  j.stop = d.texts(4, 20);
  j.banned = d.texts(4, 20);
  if (d.coin()) {
    auto h = std::make_shared<healing>();
    h->token = 77;
    j.healing = h;
  }
  if (d.coin()) j.constraint_source = any_constraint(d);
  any_value values{d};
  visit_sampling([&](const sampling_field& f, auto, auto used) { values.set(f, j.sampling.*used); });
  j.sampling.choice = static_cast<std::uint32_t>(d.below(5));
  if (d.coin()) o.resume = std::string(d.below(200), 'r');
  o.stay = std::chrono::milliseconds(d.below(1'000'000));
  return o;
}

std::string frame_of_order(const job_order& o) {
  auto frames = job_frames(o, now);
  REQUIRE(frames.has_value());
  REQUIRE(frames->size() == 1);
  return frames->front();
}

}  // namespace

TEST_CASE("a job that was read is written with the bytes that it was read from") {
  for (std::uint64_t n = 0; n < rounds(400); ++n) {
    dice d(drawn_seed(n));
    const auto o = any_order(d);
    const auto frame = frame_of_order(o);
    REQUIRE(kind_of(frame) == frame_kind::job);
    const auto read = read_job(body_of(frame), now);
    if (!read) FAIL(read.error().message);
    CHECK(frame_of_order(*read) == frame);
    CHECK(read->job.id == o.job.id);
    CHECK(read->attempt == o.attempt);
    CHECK(read->stay == o.stay);
    CHECK(std::ranges::equal(read->job.prompt, o.job.prompt));
    CHECK(read->job.spoken == o.job.spoken);
    CHECK(read->job.created == o.job.created);
    CHECK(read->job.deadline == o.job.deadline);
    CHECK(read->job.stop.texts() == o.job.stop.texts());
    CHECK(read->job.sampling.seed == o.job.sampling.seed);
    CHECK(read->job.sampling.temperature == o.job.sampling.temperature);
    CHECK(read->job.sampling.choice == o.job.sampling.choice);
  }
}

TEST_CASE("no beginning of a job's frame is a job") {
  dice d(drawn_seed(1));
  auto o = any_order(d);
  o.resume = "for another gateway";
  o.stay = std::chrono::seconds(3);
  const auto frame = frame_of_order(o);
  const auto body = body_of(frame);
  // An earlier build's frame ends before `resume`, whose length takes a byte, and later ones'
  // before `user` and before `stay`.
  std::vector<std::size_t> ends;
  for (std::size_t n = 0; n < body.size(); ++n)
    if (read_job(body.substr(0, n), now)) ends.push_back(n);
  REQUIRE(ends.size() == 3);
  CHECK(ends[1] - ends[0] == 1 + o.resume.size());
  CHECK(ends[2] - ends[1] >= 1 + sizeof o.answer);
  CHECK(read_job(body.substr(0, ends[2]), now)->stay == core::duration());
  CHECK(read_job(body, now)->stay == o.stay);
  CHECK(read_job(body.substr(0, ends[0]), now)->resume.empty());
  CHECK(read_job(body.substr(0, ends[1]), now)->resume == o.resume);
  CHECK(read_job(body.substr(0, ends[1]), now)->answer == o.job.id);
  CHECK(read_job(body, now)->resume == o.resume);
  CHECK(read_job(body, now).has_value());
  CHECK(read_job(std::string(body) + "what a later build adds", now).has_value());
}

TEST_CASE("a job with a changed byte is read or refused, and keeps its limits") {
  for (std::uint64_t n = 0; n < rounds(200); ++n) {
    dice d(drawn_seed(n));
    std::string body(body_of(frame_of_order(any_order(d))));
    body[d.below(body.size())] = static_cast<char>(d.below(256));
    const auto read = read_job(body, now);
    if (!read) continue;
    CHECK(read->job.max_tokens >= 1);
    CHECK(read->job.min_tokens <= read->job.max_tokens);
    CHECK_FALSE(read->job.prompt.empty());
    CHECK(read->job.sampling.temperature >= 0);
    CHECK(read->job.sampling.temperature <= 2);
  }
}

TEST_CASE("a number out of its range is refused under its name") {
  dice d(drawn_seed(2));
  auto o = any_order(d);
  o.job.sampling.top_p = 1.5f;
  const auto frame = frame_of_order(o);
  const auto read = read_job(body_of(frame), now);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().param == "top_p");
}

TEST_CASE("a model that is to stay for less than no time is no job's") {
  dice d(drawn_seed(5));
  auto o = any_order(d);
  o.stay = std::chrono::milliseconds(-1);
  const auto read = read_job(body_of(frame_of_order(o)), now);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().param == "keep_alive");
}

TEST_CASE("a long job travels in parts, and too long a one is refused") {
  dice d(drawn_seed(3));
  auto o = any_order(d);
  std::vector<token_id> prompt(20'000, 150'000);
  o.job.prompt = prompt;
  const auto frames = job_frames(o, now, 8192);
  REQUIRE(frames.has_value());
  REQUIRE(frames->size() > 1);
  std::string whole;
  for (std::size_t i = 0; i < frames->size(); ++i) {
    REQUIRE((*frames)[i].size() <= 8192);
    const auto part = read_job_part(body_of((*frames)[i]));
    REQUIRE(part.has_value());
    CHECK(part->part == i);
    CHECK(part->of == frames->size());
    CHECK(part->id == o.job.id);
    whole += part->bytes;
  }
  CHECK(read_job(whole, now).has_value());
  CHECK_FALSE(job_frames(o, now, 1024).has_value());
}

TEST_CASE("a job with more for another gateway than a frame may have is refused") {
  dice d(drawn_seed(4));
  auto o = any_order(d);
  o.resume = std::string(longest_resume, 'r');
  CHECK(read_job(body_of(job_frames(o, now)->front()), now).has_value());
  o.resume += 'r';
  CHECK_FALSE(read_job(body_of(job_frames(o, now)->front()), now).has_value());
}

TEST_CASE("a job that was found is told in parts, and a worker tells no more than its own frames took") {
  const std::string job(20'000, 'j');
  found head;
  head.job = {{1, 2}, 3};
  head.question = UINT64_MAX;
  head.worker = worker;
  head.model = std::string(300, 'm');
  const auto frames = found_frames(head, job, 2048);
  REQUIRE(frames.size() > 1);
  std::string whole;
  for (const auto& f : frames) {
    CHECK(f.size() <= 2048);
    const auto read = read_control(f);
    REQUIRE(read.has_value());
    const auto& part = std::get<found>(*read);
    CHECK(part.of == frames.size());
    CHECK(part.question == head.question);
    whole += part.bytes;
  }
  CHECK(whole == job);
  CHECK(found_frames(head, {}, 2048).size() == 1);
  CHECK(found_frames(head, job, 1024).empty());
  head.of = most_found_parts + 1;
  CHECK_FALSE(read_control(frame_of(head)).has_value());
  head.of = head.part = 2;
  CHECK_FALSE(read_control(frame_of(head)).has_value());
}

TEST_CASE("what another gateway needs comes out as it went in, and no beginning of it does") {
  resume_part p;
  p.user = 7;
  p.skip_special = false;
  p.parted = p.begins_in_reasoning = true;
  p.tools = {{.name = "look", .parameters = "{}", .grammar = "a+", .syntax = "regex"}};
  p.warnings = {{"/a", "pattern is not enforced"}};
  p.choices = {{1, 2}, {3, 4}};
  p.client = "metadata";
  const auto bytes = bytes_of(p);
  const auto read = read_resume(bytes);
  REQUIRE(read.has_value());
  CHECK(bytes_of(*read) == bytes);
  CHECK(read->user == 7);
  CHECK(read->begins_in_reasoning);
  CHECK_FALSE(read->calls_only);
  CHECK(read->tools.front().grammar == "a+");
  CHECK(read->choices == p.choices);
  for (std::size_t n = 0; n < bytes.size(); ++n) CHECK_FALSE(read_resume(bytes.substr(0, n)).has_value());
}

TEST_CASE("stop strings are made again of their texts") {
  const std::vector<std::string> all{"ab", "abc", "b", "ab", "xyz"};
  const stop_strings first(all);
  const stop_strings again(first.texts());
  CHECK(again.bytes() == first.bytes());
  CHECK(first.texts() == all);
  CHECK(stop_strings().texts().empty());
}

TEST_CASE("control frames come out as they went in, and no beginning of one is one") {
  const job_name n{{1, 2}, 3};
  const std::vector<control> all{
      fleet::taken{n, 4, 5},
      refused{n, make_error(errc::overloaded, "full")},
      gone{worker, {n, n}},
      fleet::adopted{worker, {n}},
      fleet::find{n.id, 9, 10, gateway},
      cancel{n, finish_reason::timeout},
      fleet::pause{n, std::chrono::seconds(2)},
      resume{n},
      again{gateway, {{n, 7}}},
      adopt{n, 9, gateway, 1, 2},
      drop{{n}},
      probe{},
      pulse{gateway, 6},
      fleet::drain{std::chrono::seconds(30)},
      undrain{},
      crash{n},
      load_wish{8, gateway, "chat", true},
      load_news{8, load_stand::refused, make_error(errc::does_not_fit, "no room")},
      found{n, 5, worker, "chat", 2, std::chrono::seconds(1), 6, true, 1, 3, "job"}};
  for (const auto& c : all) {
    const auto frame = frame_of(c);
    const auto read = read_control(frame);
    REQUIRE(read.has_value());
    CHECK(read->index() == c.index());
    CHECK(frame_of(*read) == frame);
    for (std::size_t i = 0; i < frame.size(); ++i) CHECK_FALSE(read_control(frame.substr(0, i)).has_value());
    std::string other = frame;
    other[0] = 2;
    CHECK_FALSE(read_control(other).has_value());
  }
}

TEST_CASE("tokens and endings come out as they went in") {
  for (const bool logprobs : {false, true}) {
    token_frame_writer w(worker, logprobs);
    ending how;
    how.reason = finish_reason::error;
    how.stop_string = 3;
    how.input_tokens = 10, how.output_tokens = 2;
    how.scheduled = now + std::chrono::milliseconds(5);
    how.fault = make_error(errc::internal, "broken");
    const std::vector<token_logprob> likeliest{{11, -0.5f}, {12, -1.5f}, {-1, 0}};
    w.job(70'000, 2, 100, 2, true);
    for (int i = 0; i < 2; ++i) {
      const sent_token t{11 + i, std::chrono::microseconds(1000 * i)};
      if (logprobs)
        w.add(t, likeliest);
      else
        w.add(t);
    }
    w.end(how, now);
    w.job(1, 0, 0, 0, false);
    const auto frame = w.take(42);
    CHECK(w.empty());
    token_frame f;
    REQUIRE(f.read(frame));
    CHECK(f.worker == worker);
    CHECK(f.serial == 42);
    REQUIRE(f.jobs.size() == 2);
    CHECK(f.jobs[0].slot == 70'000);
    CHECK(f.jobs[0].from == 100);
    REQUIRE(f.tokens.size() == 2);
    CHECK(f.tokens[1].id == 12);
    CHECK(f.tokens[1].at == time_point(std::chrono::milliseconds(1)));
    CHECK(f.jobs[0].how.stop_string == 3u);
    CHECK(f.jobs[0].how.scheduled == time_point(std::chrono::milliseconds(5)));
    CHECK_FALSE(f.jobs[0].how.last_token.has_value());
    CHECK(f.jobs[0].how.fault->message == "broken");
    CHECK(f.jobs[0].how.shown_bytes == ending().shown_bytes);
    if (logprobs) {
      REQUIRE(f.logprobs.size() == 2);
      CHECK(f.logprobs[0].count == 1);
      CHECK(f.logprobs[0].likeliest[0].logprob == -1.5f);
    }
    for (std::size_t i = 0; i < frame.size(); ++i) CHECK_FALSE(f.read(std::string_view(frame).substr(0, i)));
  }
}

TEST_CASE("logprobs of a prompt come out as they went in, as many as fit") {
  const job_name job{{7, 9}, 3};
  const score_wish w{job, 70'000};
  const auto wish = read_score_wish(frame_of(w));
  REQUIRE(wish);
  CHECK((wish->job == job && wish->at == 70'000));
  CHECK(!read_score_wish(frame_of(w).substr(0, frame_of(w).size() - 1)));

  dice d(drawn_seed(90));
  std::vector<scored_token> all(100);
  for (auto& t : all) {
    t.drawn.logprob = -static_cast<float>(d.below(1000)) / 64;
    t.rank = 1 + static_cast<std::uint32_t>(d.below(200'000));
    t.count = static_cast<std::uint32_t>(d.below(most_top_logprobs + 1));
    for (std::uint32_t i = 0; i < t.count; ++i)
      t.likeliest[i] = {static_cast<token_id>(d.below(200'000)), -static_cast<float>(i)};
  }
  for (const std::size_t longest : {std::size_t{1}, std::size_t{1000}, longest_score_part}) {
    std::size_t at = 0;
    while (at < all.size()) {
      const auto frame =
          score_part_of(job, static_cast<std::uint32_t>(at), 100, std::span(all).subspan(at), longest);
      if (longest > 1) CHECK(frame.size() <= longest);
      const auto p = read_score_part(frame);
      REQUIRE(p);
      CHECK((p->job == job && p->at == at && p->of == 100 && !p->tokens.empty()));
      if (longest == 1) CHECK(p->tokens.size() == 1);
      if (longest == longest_score_part) CHECK(p->tokens.size() == 100);
      for (const auto& t : p->tokens) {
        const auto& was = all[at++];
        CHECK((t.drawn.logprob == was.drawn.logprob && t.rank == was.rank && t.count == was.count));
        for (std::uint32_t i = 0; i < t.count; ++i)
          CHECK((t.likeliest[i].id == was.likeliest[i].id &&
                 t.likeliest[i].logprob == was.likeliest[i].logprob));
      }
    }
  }
  const auto whole = score_part_of(job, 0, 100, all, longest_score_part);
  for (std::size_t n = 0; n < whole.size(); n += 7) CHECK(!read_score_part(whole.substr(0, n)));
  CHECK(!read_score_part(score_part_of(job, 0, 99, all, longest_score_part)));  // more than there are
  CHECK(read_score_part(score_part_of(job, 100, 100, {}, longest_score_part)));
}

TEST_CASE("a lone token takes some ten bytes beside the frame's head") {
  token_frame_writer w(worker, false);
  w.job(300, 0, 500, 1, false);
  w.add({12'000, std::chrono::seconds(10)});
  const auto lone = w.take(1000).size();
  w.job(300, 0, 500, 0, false);
  CHECK(lone <= 2 + 17 + 2 + 1 + 14);
}

TEST_CASE("a board comes out as it went in, and what is no board is refused") {
  fleet_board b;
  b.worker = worker;
  b.state = worker_state::draining;
  b.number = 9;
  b.broken = 10;
  b.untold = 11;
  b.models.push_back({.name = "chat",
                      .device = "sim",
                      .engine = 4,
                      .vocab_size = 1000,
                      .context = 100,
                      .batch = 8,
                      .queue = 256,
                      .jobs = 3,
                      .prompt_rate = 12.5,
                      .closed = "no"});
  b.models.back().leaves = true;
  b.known.push_back({.name = "big", .state = "asleep", .bytes = 7, .wakes = true, .jobs = 2, .wanted = true});
  b.known.push_back({.name = "small", .state = "absent", .pinned = true});
  b.on_demand = true;
  b.devices.push_back({"cuda:0", 123});
  b.gateways[gateway] = {12, 3};
  const auto read = read_board(json_of(b));
  REQUIRE(read.has_value());
  CHECK(json_of(*read) == json_of(b));
  CHECK(read->gateways.at(gateway).frames == 12);
  CHECK(read->models[0].leaves);
  REQUIRE(read->known.size() == 2);
  CHECK(read->known[0].wakes);
  CHECK(read->known[0].jobs == 2);
  CHECK(read->known[0].wanted);
  CHECK_FALSE(read->known[0].pinned);
  CHECK(read->known[1].pinned);
  CHECK(read->on_demand);
  REQUIRE(read->devices.size() == 1);
  CHECK(read->devices[0].name == "cuda:0");
  CHECK(read->devices[0].free == 123);
  CHECK(read->broken == 10);
  CHECK(read->untold == 11);
  CHECK_FALSE(read_board("{}").has_value());
  CHECK_FALSE(read_board("[1]").has_value());
  CHECK_FALSE(read_board(R"({"v":2,"o":"wwwwwwww22222222","state":"ready"})").has_value());
  CHECK_FALSE(read_board(R"({"v":1,"o":"w","state":"ready"})").has_value());
  const auto old = read_board(R"({"v":1,"o":"wwwwwwww22222222","state":"ready","known":[{"name":"a"}]})");
  REQUIRE(old.has_value());  // of an earlier build: it loads nothing for requests
  CHECK_FALSE(old->on_demand);
  CHECK(old->devices.empty());
}

TEST_CASE("a wish for a model without a name, or with one that is too long, is no frame") {
  CHECK_FALSE(read_control(frame_of(load_wish{8, gateway, "", false})).has_value());
  CHECK_FALSE(read_control(frame_of(load_wish{8, gateway, std::string(longest_wish_name + 1, 'a'), false}))
                  .has_value());
  CHECK_FALSE(read_control(frame_of(load_wish{8, "nobody", "chat", false})).has_value());
  CHECK(
      read_control(frame_of(load_wish{8, gateway, std::string(longest_wish_name, 'a'), false})).has_value());
}

}  // namespace weir::tests::frames_test
