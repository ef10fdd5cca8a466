// Runs whose streams are dropped, resumed and followed, against a server that keeps jobs as weir.v1 says:
// what is counted, never how long it took.
#include "tests/net/load/runs.h"

namespace weir::tests::lives_test {

using namespace weir::load;

namespace {

constexpr int answer_tokens = 6;

// Answers a create with the first tokens of an answer. Answers a resume, or an acknowledgement of these
// tokens, with the rest. `planted`: a fault in the answer to a resume.
class keeper {
 public:
  enum class fault { none, skips, repeats, other_text, expired, invalid_cursor, not_found, too_many_jobs };

  keeper(int at_first, fault planted = fault::none) : at_first_(at_first), planted_(planted) {}

  std::string operator()(const std::string& said, bool&) {
    const auto m = boost::json::parse(said).as_object();
    const std::string type(m.at("type").as_string());
    if (type == "response.ack") {
      acked.push_back(m.at("seq").to_number<int>());
      if (acked.back() < at_first_) return {};
      const std::string lane(m.at("id").as_string());
      return tokens(lane, at_first_, answer_tokens, "ü") + end(lane);
    }
    const std::string lane(m.at("id").as_string());
    if (type == "response.create") {
      asked = m;
      const auto created = fmt::format(
          R"({{"type":"response.created","id":"{}","response_id":"job{}","seq":0}})", lane, jobs_++);
      return server_frame(created) + tokens(lane, 0, at_first_, "ü") +
             (at_first_ == answer_tokens ? end(lane) : "");
    }
    if (type == "response.cancel") {
      ++cancels;
      return done(lane, at_first_, "cancelled");
    }
    if (type != "response.resume") return {};
    return resume(lane, std::string(m.at("response_id").as_string()), m.at("after").to_number<int>());
  }

  // What the client sent. Read only after the server's end.
  boost::json::object asked;  // the latest create
  std::vector<int> acked;
  int cancels = 0;

 private:
  std::string resume(const std::string& lane, const std::string& id, int after) {
    const auto refuse = [&](const char* code) {
      return server_frame(
          fmt::format(R"({{"type":"error","id":"{}","code":"{}","message":"m"}})", lane, code));
    };
    switch (planted_) {
      case fault::expired:
        return refuse("resume_expired");
      case fault::invalid_cursor:
        return refuse("invalid_cursor");
      case fault::not_found:
        return refuse("not_found");
      case fault::too_many_jobs:
        return refuse("too_many_jobs");
      default:
        break;
    }
    const int from = planted_ == fault::skips ? after + 1 : planted_ == fault::repeats ? after - 1 : after;
    return server_frame(fmt::format(
               R"({{"type":"response.resumed","id":"{}","response_id":"{}","after":{},"seq":{}}})", lane, id,
               after, answer_tokens)) +
           tokens(lane, from, answer_tokens, planted_ == fault::other_text ? "é" : "ü") + end(lane);
  }
  // The deltas of tokens from + 1 to `to`.
  static std::string tokens(const std::string& lane, int from, int to, const char* text) {
    std::string out;
    for (int i = std::max(from, 0) + 1; i <= to; ++i)
      out += server_frame(
          fmt::format(R"({{"type":"response.delta","id":"{}","seq":{},"delta":"{}"}})", lane, i, text));
    return out;
  }
  static std::string end(const std::string& lane) { return done(lane, answer_tokens); }

  int at_first_;
  fault planted_;
  int jobs_ = 0;
};

report with_drops(keeper& k, std::size_t streams = 10) {
  scripted_server s([&](const std::string& said, bool& hang_up) { return k(said, hang_up); });
  auto o = closed(s.url("ws"), streams);
  o.disconnect = "100%/s";
  o.resume = true;
  o.distinct = 1;
  o.duration = 1.5;
  return run_at(o);
}

report with_followers(keeper& k, std::size_t n) {
  scripted_server s([&](const std::string& said, bool& hang_up) { return k(said, hang_up); });
  auto o = closed(s.url("ws"), 3);
  o.follow = n;
  return run_at(o);
}

}  // namespace

TEST_CASE("streams that lose their sockets are resumed, and end as if nothing had been") {
  keeper k(2);
  const auto r = with_drops(k);
  const auto n = [&](figure f) { return r.all.number(f); };
  CHECK(k.asked.at("on_disconnect") == "continue");
  CHECK(n(figure::disconnects) >= 1);
  CHECK(n(figure::completed) >= 1);
  CHECK(n(figure::resumes_ok) == n(figure::completed));
  CHECK(n(figure::dropped) == 0);
  CHECK(n(figure::errors) == 0);
  CHECK(n(figure::gaps) + n(figure::repeats) + n(figure::text_mismatches) + n(figure::resumes_expired) == 0);
  CHECK(n(figure::texts_compared) >= 1);
  CHECK(r.all.of(figure::resume_gap_ms).count() == n(figure::completed));
  CHECK(n(figure::completed) + n(figure::cut) == n(figure::requests));
  CHECK(r.all.found().empty());
  CHECK(k.cancels >= 1);  // answers that the run's end cuts are cancelled, not left to their grace
}

TEST_CASE("streams whose server dies go on at another one") {
  std::atomic<int> cut = 0;
  scripted_server first([&](const std::string& said, bool& hang_up) {
    const std::string lane(boost::json::parse(said).at("id").as_string());
    hang_up = true;
    const auto created =
        fmt::format(R"({{"type":"response.created","id":"{}","response_id":"job{}","seq":0}})", lane, ++cut);
    return server_frame(created) + delta(lane, 1) + delta(lane, 2);
  });
  keeper k(answer_tokens);
  scripted_server second([&](const std::string& said, bool& hang_up) { return k(said, hang_up); });
  auto o = closed(first.url("ws") + "," + second.url("ws"), 4);
  o.resume = true;
  o.threads = 1;
  o.duration = 1;
  const auto r = run_at(o);
  const auto n = [&](figure f) { return r.all.number(f); };
  CHECK(cut > 0);
  CHECK(n(figure::cuts) == cut);
  CHECK(n(figure::resumes_ok) > 0);
  CHECK(n(figure::resumes_ok) <= cut);  // the end of the run may come first
  CHECK(n(figure::disconnects) + n(figure::gaps) + n(figure::repeats) + n(figure::failed) == 0);
  CHECK(n(figure::completed) > 0);
}

TEST_CASE("a server that cannot be reached leaves its clients to the other one") {
  keeper k(answer_tokens);
  scripted_server there([&](const std::string& said, bool& hang_up) { return k(said, hang_up); });
  const auto r = run_at(closed("ws://127.0.0.1:1," + there.url("ws"), 4));
  CHECK(r.all.number(figure::failed) == 0);
  CHECK(r.all.number(figure::completed) > 0);
}

TEST_CASE("several servers that cannot stand for one are refused by name") {
  const std::pair<const char*, const char*> rows[] = {{"ws://h,http://h", "differ in scheme or path"},
                                                      {"ws://h/a,ws://h/b", "differ in scheme or path"},
                                                      {"wss://h,wss://g", "not supported over TLS"},
                                                      {"ws://h,", "--url"}};
  for (const auto& [url, why] : rows) {
    CAPTURE(url);
    const auto no = resolve(closed(url, 1));
    REQUIRE_FALSE(no.has_value());
    CHECK(no.error().message.find(why) != std::string::npos);
  }
}

TEST_CASE("a resume that skips, repeats, or says something else is found by its name") {
  using fault = keeper::fault;
  keeper skips(2, fault::skips), repeats(2, fault::repeats), changes(2, fault::other_text);
  const auto lost = with_drops(skips), twice = with_drops(repeats), changed = with_drops(changes);
  CHECK(lost.all.number(figure::gaps) == lost.all.number(figure::completed));
  CHECK(lost.all.found().contains("lost token"));
  CHECK(twice.all.number(figure::repeats) == twice.all.number(figure::completed));
  CHECK(twice.all.found().contains("repeated token"));
  CHECK(changed.all.number(figure::gaps) + changed.all.number(figure::repeats) == 0);
}

TEST_CASE("an answer that the server no longer keeps is counted, and so is each other refusal") {
  using fault = keeper::fault;
  for (const auto& [planted, code] : {std::pair{fault::expired, "resume_expired"},
                                      {fault::invalid_cursor, "invalid_cursor"},
                                      {fault::not_found, "not_found"},
                                      {fault::too_many_jobs, "too_many_jobs"}}) {
    CAPTURE(code);
    keeper k(2, planted);
    const auto r = with_drops(k);
    CHECK(r.all.number(figure::refused) >= 1);
    CHECK(r.all.number(figure::resumes_ok) == 0);
    CHECK(r.all.number(figure::resumes_expired) ==
          (planted == fault::expired ? r.all.number(figure::refused) : 0));
    CHECK(r.all.error_texts().contains(std::string(code) + ": m"));
  }
}

TEST_CASE("followers read every answer from its beginning, each on a socket of its own") {
  keeper k(answer_tokens);
  const auto r = with_followers(k, 2);
  const auto n = [&](figure f) { return r.all.number(f); };
  REQUIRE(n(figure::completed) >= 3);
  CHECK(n(figure::followers) >= 2 * (n(figure::completed) - 3));  // the end of the run cuts the last ones
  CHECK(n(figure::followers) <= 2 * n(figure::completed));
  CHECK(n(figure::texts_compared) == n(figure::followers));
  CHECK(n(figure::followers_failed) + n(figure::text_mismatches) + n(figure::gaps) + n(figure::repeats) == 0);
  CHECK(n(figure::output_tokens) <= answer_tokens * n(figure::requests));  // each answer counts once
  CHECK(n(figure::errors) == 0);
  CHECK(r.all.found().empty());
}

TEST_CASE("a follower that reads something else, misses a token, or is refused is found") {
  using fault = keeper::fault;
  keeper skips(answer_tokens, fault::skips), changes(answer_tokens, fault::other_text),
      refused(answer_tokens, fault::too_many_jobs);
  const auto lost = with_followers(skips, 1);
  CHECK(lost.all.number(figure::gaps) >= 1);
  CHECK(lost.all.number(figure::text_mismatches) >= 1);
  const auto changed = with_followers(changes, 1);
  CHECK(changed.all.number(figure::text_mismatches) >= 1);
  CHECK(changed.all.number(figure::text_mismatches) == changed.all.number(figure::followers));
  const auto none = with_followers(refused, 1);
  CHECK(none.all.number(figure::followers) == 0);
  CHECK(none.all.number(figure::followers_failed) >= 1);
  CHECK(none.all.number(figure::errors) == 0);  // the answers themselves completed
  CHECK(none.all.error_texts().contains("follower: too_many_jobs: m"));
}

TEST_CASE("followers of an answer whose asker was dropped for good are let go") {
  keeper k(2);
  {
    scripted_server s([&](const std::string& said, bool& hang_up) { return k(said, hang_up); });
    auto o = closed(s.url("ws"), 4);
    o.follow = 1;
    o.disconnect = "100%/s";
    o.duration = 1;
    const auto r = run_at(o);
    CHECK(r.all.number(figure::dropped) >= 1);
    CHECK(r.all.number(figure::errors) == 0);
    CHECK(r.all.number(figure::followers_failed) == 0);
    CHECK(r.all.number(figure::text_mismatches) == 0);
  }
  CHECK(k.asked.at("on_disconnect") == "cancel");
}

TEST_CASE("a window is asked for, and what came is acknowledged until the answer ends") {
  keeper k(4);
  {
    scripted_server s([&](const std::string& said, bool& hang_up) { return k(said, hang_up); });
    auto o = closed(s.url("ws"), 1);
    o.window = 4;
    o.on_lag = "pause";
    o.pace = "even";
    const auto r = run_at(o);
    CHECK(r.all.number(figure::completed) >= 1);  // the rest comes only after an ack of the fourth token
    CHECK(r.all.number(figure::errors) == 0);
  }
  CHECK(k.asked.at("window") == 4);
  CHECK(k.asked.at("on_lag") == "pause");
  CHECK(k.asked.at("pace") == "even");
  CHECK(std::ranges::count(k.acked, 4) >= 1);
  // An ack is for half of the window or more, and none comes after the end.
  for (const int seq : k.acked) CHECK((seq >= 2 && seq <= 4));
}

}  // namespace weir::tests::lives_test
