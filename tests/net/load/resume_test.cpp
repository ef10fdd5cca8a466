// One answer over several connections, without a socket: create, created, deltas, a drop, resume, resumed,
// deltas, done; each message that a server may answer, and each that it must not.
#include "net/load/answer_reader.h"
#include "tests/net/load/spoken.h"

namespace weir::tests::resume_test {

using namespace weir::load;

namespace {

// A client whose connections a test opens and drops.
class client {
 public:
  explicit client(manner m = speaking("ws://h")) : m_(std::move(m)), answer_(numbered(7), true) { connect(); }

  void connect() {
    talk_.emplace(m_, ++connections_);
    say(upgrade_answer(*talk_) + server_frame(R"({"type":"session.created","session_id":"s"})"));
  }
  boost::json::object ask() {
    question q;
    q.id = "r7";
    return messages_of(talk_->ask(q)).at(0);
  }
  // Drops the connection, opens another one, and resumes on it.
  boost::json::object resume() {
    answer_.record().drop(at_);
    connect();
    return messages_of(answer_.resume(*talk_)).at(0);
  }
  client& say(const std::string& bytes) {
    talk_->feed(bytes);
    at_ += 1000;
    answer_.understand(*talk_, at_);
    return *this;
  }
  client& says(const std::string& message) { return say(server_frame(message)); }

  talk& speech() { return *talk_; }
  answer_reader& answer() { return answer_; }
  stream_record& record() { return answer_.record(); }

 private:
  static stream_record numbered(std::uint64_t index) {
    stream_record r;
    r.index = index;
    return r;
  }

  manner m_;
  std::optional<talk> talk_;
  answer_reader answer_;
  micros at_ = 0;
  std::uint64_t connections_ = 0;
};

std::string created(const std::string& id = "r7") {
  return fmt::format(R"({{"type":"response.created","id":"{}","response_id":"abc","seq":0}})", id);
}
std::string delta(const std::string& id, int seq, int n, const std::string& text) {
  return fmt::format(R"({{"type":"response.delta","id":"{}","seq":{},"n":{},"delta":"{}"}})", id, seq, n,
                     text);
}
std::string resumed(const std::string& id, int after, int seq = 9, const std::string& response = "abc") {
  return fmt::format(
      R"({{"type":"response.resumed","id":"{}","response_id":"{}","after":{},"seq":{},"status":"x"}})", id,
      response, after, seq);
}
std::string done(const std::string& id, int seq, const std::string& status = "completed") {
  const std::string usage = fmt::format(R"("usage":{{"output_tokens":{}}})", seq);
  return fmt::format(R"({{"type":"response.done","id":"{}","seq":{},"status":"{}",{}}})", id, seq, status,
                     usage);
}
std::string error(const std::string& id, const std::string& code) {
  return fmt::format(R"({{"type":"error","id":"{}","code":"{}","message":"m","fatal":false}})", id, code);
}

}  // namespace

TEST_CASE("an answer over three connections is one answer: no gap, no repeat, the whole text") {
  client c;
  CHECK(c.ask().at("on_disconnect") == "cancel");
  c.says(created()).says(delta("r7", 2, 2, "ab"));
  CHECK(c.answer().response_id() == "abc");
  auto said = c.resume();
  CHECK(said.at("type") == "response.resume");
  CHECK(said.at("id") == "r7.1");
  CHECK(said.at("response_id") == "abc");
  CHECK(said.at("after") == 2);
  c.says(resumed("r7.1", 2)).says(delta("r7.1", 5, 3, "cde"));
  said = c.resume();
  CHECK(said.at("id") == "r7.2");
  CHECK(said.at("after") == 5);
  c.says(resumed("r7.2", 5)).says(delta("r7.2", 6, 1, "f")).says(done("r7.2", 6));
  CHECK(c.answer().over());
  CHECK(c.record().how == ending::completed);
  CHECK(c.record().text == "abcdef");
  CHECK(c.record().tokens == 6);
  CHECK(c.record().gaps == 0);
  CHECK(c.record().repeats == 0);
  CHECK(c.record().disconnects == 2);
  CHECK(c.record().resumes == 2);
  CHECK(c.record().resume_gaps == std::vector<micros>{3000, 3000});  // a read each: session, resumed, delta
  CHECK(c.record().output_tokens == 6);
}

TEST_CASE("a character of several bytes beside a cut arrives whole, with the tokens that were held for it") {
  client c;
  c.ask();
  c.says(created()).says(delta("r7", 1, 1, "gr\xC3\xBC"));
  c.resume();
  // Tokens 2 and 3 are halves of one character: the second one's frame has both.
  c.says(resumed("r7.1", 1)).says(delta("r7.1", 3, 2, "\xF0\x9F\xA6\xA6"));
  c.resume();
  c.says(resumed("r7.2", 3)).says(delta("r7.2", 4, 1, "\\u00e9\\n")).says(done("r7.2", 4));
  CHECK(c.record().text == "gr\xC3\xBC\xF0\x9F\xA6\xA6\xC3\xA9\n");
  CHECK(c.record().tokens == 4);
  CHECK(c.record().gaps + c.record().repeats == 0);
}

TEST_CASE("a frame that a drop cut in half is not seen, and comes again whole") {
  client c;
  c.ask();
  c.says(created()).says(delta("r7", 1, 1, "a"));
  const auto half = server_frame(delta("r7", 2, 1, "b"));
  c.say(half.substr(0, half.size() / 2));
  CHECK(c.resume().at("after") == 1);
  c.says(resumed("r7.1", 1)).says(delta("r7.1", 2, 1, "b")).says(done("r7.1", 2));
  CHECK(c.record().text == "ab");
  CHECK(c.record().gaps + c.record().repeats == 0);
}

TEST_CASE("a resume that goes on at the wrong token is a loss or a repeat by seq") {
  client lost;
  lost.ask();
  lost.says(created()).says(delta("r7", 2, 2, "ab"));
  lost.resume();
  lost.says(resumed("r7.1", 2)).says(delta("r7.1", 4, 1, "d")).says(done("r7.1", 4));
  CHECK(lost.record().gaps == 1);
  CHECK(lost.record().repeats == 0);

  client twice;
  twice.ask();
  twice.says(created()).says(delta("r7", 2, 2, "ab"));
  twice.resume();
  twice.says(resumed("r7.1", 2)).says(delta("r7.1", 3, 2, "bc")).says(done("r7.1", 3));
  CHECK(twice.record().gaps == 0);
  CHECK(twice.record().repeats == 1);
  CHECK(twice.record().tokens == 3);
}

TEST_CASE("an answer that ended while its client was away comes with the catch-up, or with its end alone") {
  client c;
  c.ask();
  c.says(created()).says(delta("r7", 2, 2, "ab"));
  c.resume();
  c.says(resumed("r7.1", 2, 5)).says(delta("r7.1", 5, 3, "cde")).says(done("r7.1", 5));
  CHECK(c.record().how == ending::completed);
  CHECK(c.record().text == "abcde");

  client all_seen;
  all_seen.ask();
  all_seen.says(created()).says(delta("r7", 2, 2, "ab"));
  all_seen.resume();
  all_seen.says(resumed("r7.1", 2, 2)).says(done("r7.1", 2, "cancelled"));
  CHECK(all_seen.record().how == ending::cancelled);
  CHECK(all_seen.record().gaps == 0);
  CHECK(all_seen.record().resume_gaps.empty());  // there was no next token
}

TEST_CASE("each refusal of a resume ends the answer by name, and expiry is told apart") {
  for (const std::string code :
       {"resume_expired", "invalid_cursor", "not_found", "too_many_jobs", "overloaded"}) {
    CAPTURE(code);
    client c;
    c.ask();
    c.says(created()).says(delta("r7", 2, 2, "ab"));
    c.resume();
    c.says(error("r7.1", code));
    CHECK(c.answer().over());
    CHECK(c.record().how == ending::refused);
    CHECK(c.record().error == code + ": m");
    CHECK(c.record().expired == (code == "resume_expired"));
    CHECK(c.record().resumes == 0);
    CHECK(c.record().disconnects == 1);
  }
}

TEST_CASE("what a server must not answer to a resume fails by name") {
  const auto why = [](const std::string& message) {
    client c;
    c.ask();
    c.says(created()).says(delta("r7", 2, 2, "ab"));
    c.resume();
    c.says(message);
    CHECK(c.record().how == ending::failed);
    return c.record().error;
  };
  CHECK(why(delta("r7.1", 3, 1, "c")) == "response.delta before response.resumed");
  CHECK(why(R"({ "type":"response.delta","id":"r7.1","seq":3,"delta":"c"})") ==
        "response.delta before response.resumed");
  CHECK(why(done("r7.1", 2)) == "response.done before response.resumed");
  CHECK(why(created("r7.1")) == "response.created where none was due");
  CHECK(why(resumed("r7.1", 1)) == "response.resumed after 1, where 2 was asked for");
  CHECK(why(resumed("r7.1", -1)) == "response.resumed after -1, where 2 was asked for");
  CHECK(why(R"({"type":"response.resumed","id":"r7.1","response_id":"abc"})") ==
        "response.resumed after nothing, where 2 was asked for");
  CHECK(why(resumed("r7.1", 2, 9, "xyz")) == "response.resumed of another response: xyz");
}

TEST_CASE("messages of a lane that is not the client's change nothing") {
  client c;
  c.ask();
  c.says(created()).says(delta("r7", 2, 2, "ab"));
  c.resume();
  c.says(delta("r7", 3, 1, "x")).says(done("r7", 3)).says(resumed("other", 2)).says(created());
  CHECK(!c.answer().over());
  CHECK(c.record().resumes == 0);
  c.says(resumed("r7.1", 2)).says(delta("r7.1", 3, 1, "c")).says(done("r7.1", 3));
  CHECK(c.record().text == "abc");
}

TEST_CASE("created twice, resumed unasked, and a number of tokens below zero fail by name") {
  for (const auto& [message, error] : std::initializer_list<std::pair<std::string, std::string>>{
           {created(), "response.created where none was due"},
           {resumed("r7", 0), "response.resumed where none was due"},
           {delta("r7", 3, -1, "x"), "response.delta with n -1"},
           {R"({"type":"response.delta","id":"r7","seq":3,"n":99999999999,"delta":"x"})",
            "response.delta with n 99999999999"}}) {
    CAPTURE(message);
    client c;
    c.ask();
    c.says(created()).says(message);
    CHECK(c.record().how == ending::failed);
    CHECK(c.record().error == error);
  }
}

TEST_CASE("a job that is to outlive its socket says so, and how it is to be paced and held") {
  manner m = speaking("ws://h");
  m.outlives = true;
  m.pace = "even";
  m.window = 64;
  m.on_lag = "pause";
  client c(m);
  const auto said = c.ask();
  CHECK(said.at("on_disconnect") == "continue");
  CHECK(said.at("pace") == "even");
  CHECK(said.at("window") == 64);
  CHECK(said.at("on_lag") == "pause");
  client plain;
  const auto least = plain.ask();
  for (const char* name : {"pace", "window", "on_lag"}) CHECK(!least.contains(name));
}

TEST_CASE("one cumulative acknowledgement as soon as half of the window has come") {
  manner m = speaking("ws://h");
  m.window = 8;
  client c(m);
  c.ask();
  c.says(created()).says(delta("r7", 3, 3, "abc"));
  CHECK(c.speech().take_to_send().empty());
  c.says(delta("r7", 4, 1, "d"));
  auto said = messages_of(c.speech().take_to_send());
  REQUIRE(said.size() == 1);
  CHECK(said[0].at("type") == "response.ack");
  CHECK(said[0].at("id") == "r7");
  CHECK(said[0].at("seq") == 4);
  c.says(delta("r7", 7, 3, "efg"));
  CHECK(c.speech().take_to_send().empty());
  // What came with one read is acknowledged together.
  c.say(server_frame(delta("r7", 12, 5, "x")) + server_frame(delta("r7", 20, 8, "y")));
  said = messages_of(c.speech().take_to_send());
  REQUIRE(said.size() == 1);
  CHECK(said[0].at("seq") == 20);
  // A resume begins behind its cursor, with the new lane.
  c.resume();
  c.says(resumed("r7.1", 20)).says(delta("r7.1", 23, 3, "hij"));
  CHECK(c.speech().take_to_send().empty());
  c.says(delta("r7.1", 28, 5, "klmno"));
  said = messages_of(c.speech().take_to_send());
  REQUIRE(said.size() == 1);
  CHECK(said[0].at("id") == "r7.1");
  CHECK(said[0].at("seq") == 28);
  // There is nobody any more who waits for an acknowledgement of a whole answer.
  c.says(delta("r7.1", 36, 8, "z")).says(done("r7.1", 36));
  CHECK(c.speech().take_to_send().empty());

  m.window = 1;
  client one(m);
  one.ask();
  one.says(created()).says(delta("r7", 1, 1, "a"));
  CHECK(messages_of(one.speech().take_to_send()).at(0).at("seq") == 1);
  client none;
  none.ask();
  none.says(created()).says(delta("r7", 900, 900, "a"));
  CHECK(none.speech().take_to_send().empty());
}

TEST_CASE("an acknowledgement that crossed the end of its answer is no error of the next one") {
  client c;
  c.ask();
  c.says(created()).says(done("r7", 0));
  CHECK(c.record().how == ending::completed);
  question q;
  q.id = "r8";
  c.speech().ask(q);
  c.speech().feed(server_frame(error("r7", "not_found")));
  happening h;
  CHECK(!c.speech().next(h));
  c.speech().feed(server_frame(error("r8", "not_found")));
  REQUIRE(c.speech().next(h));
  CHECK(h.is == happening::kind::refused);
}

TEST_CASE("a follower reads an answer from its beginning under its own lane") {
  client c;
  const auto said = messages_of(c.answer().follow(c.speech(), "abc")).at(0);
  CHECK(said.at("id") == "r7.1");
  CHECK(said.at("response_id") == "abc");
  CHECK(said.at("after") == 0);
  c.says(resumed("r7.1", 0, 3)).says(delta("r7.1", 3, 3, "abc")).says(done("r7.1", 3));
  CHECK(c.record().how == ending::completed);
  CHECK(c.record().text == "abc");
}

}  // namespace weir::tests::resume_test
