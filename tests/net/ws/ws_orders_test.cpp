// Every order in which a client can say things: create, cancel, ack, resume, lose its socket, wait. In
// virtual time and without sockets; a small model says what the server must answer to each.
#include <algorithm>
#include <map>
#include <set>

#include "net/ws/ws_conversation.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"
#include "tests/support/sim_text.h"
#include "tests/support/world.h"

namespace weir::tests::ws_orders_test {

using namespace std::chrono_literals;

namespace {

using json_object = boost::json::object;
using answers = std::multiset<std::string>;

constexpr std::uint32_t most_tokens = 8;  // of each job

struct grounds {
  explicit grounds(std::uint64_t seed) : here(seed) {
    actors::service_options o;
    o.owner.device = "sim";
    o.models.push_back({"sim", "sim:rate=100,prefill=100000000"});
    service = here.make_service(std::move(o));
    net::server_options so;
    so.limits.retain_mb = 16;
    state = std::make_shared<net::server_state>(*service, so);
    hub = std::make_shared<net::hub>(state, here.get_executor());
    state->hubs = {hub};
  }
  void settle(core::duration time = {}) {
    here.run([] { return false; }, time);
  }

  world here;
  std::unique_ptr<actors::service> service;
  std::shared_ptr<net::server_state> state;
  std::shared_ptr<net::hub> hub;
};

// A session without a socket. The client reads whatever there is at once.
class bare_session final : public net::ws_conversation::outside,
                           public std::enable_shared_from_this<bare_session> {
 public:
  bare_session(net::hub& h, std::function<void(const json_object&)> hears)
      : hears_(std::move(hears)), talk_(h, frames_, *this, let_in(), {}) {
    scratch_.ids = &h.ids();
  }

  void understand(const std::string& message, std::chrono::steady_clock::time_point now) {
    talk_.understand(message, true, now);
  }
  void write() override {
    for (std::string frame; frames_.take(frame, scratch_, true); frame.clear())
      hears_(boost::json::parse(frame).as_object());
  }
  std::function<void()> news() override {
    return [me = weak_from_this()] {
      if (const auto self = me.lock()) self->write();
    };
  }
  std::weak_ptr<outside> weak() override { return weak_from_this(); }
  void say(std::string frame) override {
    frames_.say(std::move(frame));
    write();
  }
  void close(net::close_code why) override { FAIL("closed with " << static_cast<int>(why)); }
  void allow_messages() override {}

 private:
  static net::admission let_in() {
    net::admission how;
    how.authenticated = true;
    return how;
  }

  std::function<void(const json_object&)> hears_;
  net::ws_frames frames_;
  net::ws_conversation talk_;
  net::ws::scratch scratch_;
};

// What a client may do, on lanes a and b.
enum class act {
  create,
  cancel,
  cancel_job,
  resume_a,
  resume_b,
  ack,
  ack_too_far,
  drop,
  wait,
  finish,
  count
};
constexpr const char* act_names[] = {"create", "cancel",      "cancel_job", "resume_a", "resume_b",
                                     "ack",    "ack_too_far", "drop",       "wait",     "finish"};

// One client. Checks what comes on each lane, and collects everything else that it is told.
class client {
 public:
  explicit client(grounds& g) : g_(g) { connect(); }
  ~client() { session_.reset(); }

  // What the server must answer to `a`, besides deltas; to wait and finish, at most that.
  answers expected(act a) const {
    switch (a) {
      case act::create:
        return open("a") ? answers{"error duplicate_id"} : answers{"created a"};
      case act::cancel:
        return open("a") ? done_on(lanes_.at("a").job) : known("a") ? answers{} : answers{"error not_found"};
      case act::cancel_job:
        return jobs_.empty() ? answers{"error not_found"} : done_on(last_job());
      case act::resume_a:
        return resumed("a");
      case act::resume_b:
        return resumed("b");
      case act::ack:
        return known("a") ? answers{} : answers{"error not_found"};
      case act::ack_too_far:
        if (!known("a")) return {"error not_found"};
        return open("a") ? answers{"error invalid_cursor"} : answers{};
      default:
        return {};
    }
  }

  void perform(act a) {
    told_.clear();
    may_be_done_ = !jobs_.empty() && jobs_.back().state == job::known::neither;
    switch (a) {
      case act::create:
        if (!open("a")) asked_.push_back(++seed_);
        return say(R"({"type":"response.create","id":"a","input":"x","max_tokens":8,"seed":)" +
                   std::to_string(open("a") ? 1 : seed_) + "}");
      case act::cancel:
        return say(R"({"type":"response.cancel","id":"a"})");
      case act::cancel_job:
        say(R"({"type":"response.cancel","response_id":")" + response_id() + "\"}");
        if (!jobs_.empty()) jobs_.back().state = job::known::over;
        return;
      case act::resume_a:
        return resume("a", seen_);
      case act::resume_b:
        return resume("b", 0);
      case act::ack:
        return say(R"({"type":"response.ack","id":"a","seq":)" + std::to_string(open("a") ? seen_ : 0) + "}");
      case act::ack_too_far:
        return say(R"({"type":"response.ack","id":"a","seq":1000})");
      case act::drop:
        return connect();
      case act::wait:
        return pass(33ms);
      default:
        return pass(1s);
    }
  }

  const answers& told() const { return told_; }
  // Whether told() is `wanted`. If the last job may have ended while nobody followed it, a resume may also be
  // answered with its done.
  bool told_as(answers wanted) const {
    if (told_ == wanted) return true;
    for (const char* lane : {"a", "b"}) {
      if (!may_be_done_ || !wanted.contains(std::string("resumed ") + lane)) continue;
      wanted.insert(std::string("done ") + lane);
    }
    return told_ == wanted;
  }
  bool has_open_lanes() const {
    return std::ranges::any_of(lanes_, [](const auto& l) { return l.second.is_open; });
  }

  // Reads the last job to its end, and checks that no token is missing.
  void conclude() {
    if (jobs_.empty()) return;
    connect();
    perform(act::resume_a);
    if (open("a")) perform(act::finish);
    REQUIRE(told_.count("done a") == 1);
    const job& last = jobs_.back();
    REQUIRE((last.cancelled || seen_ == most_tokens));
  }

 private:
  struct job {
    std::string id;
    std::uint64_t seed;
    // `neither`: time has passed while nobody followed the job, so it may have ended or not.
    enum class known { running, over, neither } state = known::running;
    bool cancelled = false;
  };
  struct lane {
    std::size_t job = 0;
    std::uint32_t seq = 0;
    bool is_open = false, begun = false;
  };

  bool known(const std::string& id) const { return lanes_.contains(id); }
  bool open(const std::string& id) const { return known(id) && lanes_.at(id).is_open; }
  std::size_t last_job() const { return jobs_.size() - 1; }
  std::string response_id() const { return jobs_.empty() ? std::string(32, '0') : jobs_.back().id; }

  answers done_on(std::size_t of) const {
    answers all;
    for (const auto& [id, l] : lanes_)
      if (l.is_open && l.job == of) all.insert("done " + id);
    return all;
  }
  answers resumed(const std::string& id) const {
    if (open(id)) return {"error duplicate_id"};
    if (jobs_.empty()) return {"error not_found"};
    answers all{"resumed " + id};
    if (jobs_.back().state == job::known::over) all.insert("done " + id);
    return all;
  }

  void pass(core::duration time) {
    for (std::size_t i = 0; i < jobs_.size(); ++i)
      if (jobs_[i].state == job::known::running && done_on(i).empty()) jobs_[i].state = job::known::neither;
    g_.settle(time);
  }
  void connect() {
    lanes_.clear();
    session_ = std::make_shared<bare_session>(*g_.hub, [this](const json_object& f) { hear(f); });
    g_.settle();
  }
  void say(const std::string& message) {
    session_->understand(message, clock_ += 10s);
    g_.settle();
  }
  void resume(const std::string& id, std::uint32_t after) {
    // Where there is no job to resume, the lane is over at once, and its id is known from then on.
    if (!open(id)) lanes_[id] = {jobs_.empty() ? 0 : last_job(), after, !jobs_.empty(), false};
    say(R"({"type":"response.resume","id":")" + id + R"(","response_id":")" + response_id() +
        R"(","after":)" + std::to_string(after) + "}");
  }

  void hear(const json_object& f) {
    const std::string type(f.at("type").as_string());
    if (type == "error") {
      told_.insert("error " + std::string(f.at("code").as_string()));
      return;
    }
    const std::string id(f.at("id").as_string());
    const auto seq = f.at("seq").to_number<std::uint32_t>();
    if (type == "response.created") {
      jobs_.push_back({std::string(f.at("response_id").as_string()), asked_.back()});
      lanes_[id] = {last_job(), 0, true, true};
      seen_ = 0;
      told_.insert("created " + id);
      return;
    }
    lane& l = lanes_.at(id);
    REQUIRE(l.is_open);
    if (type == "response.resumed") {
      REQUIRE_FALSE(std::exchange(l.begun, true));
      REQUIRE(f.at("after").to_number<std::uint32_t>() == l.seq);
      job& j = jobs_[l.job];
      const bool runs = f.at("status") == "in_progress";
      if (j.state == job::known::neither) j.state = runs ? job::known::running : job::known::over;
      REQUIRE(runs == (j.state == job::known::running));
      told_.insert("resumed " + id);
      return;
    }
    REQUIRE(l.begun);
    type == "response.delta" ? hear_delta(f, l, seq) : hear_done(f, l, seq);
    if (id == "a" && l.job == last_job()) seen_ = seq;
    if (type == "response.done") told_.insert("done " + id);
  }
  void hear_delta(const json_object& f, lane& l, std::uint32_t seq) {
    const auto n = f.contains("n") ? f.at("n").to_number<std::uint32_t>() : 1;
    REQUIRE(seq == l.seq + n);
    const std::string whole = sim_text(jobs_[l.job].seed, seq);
    REQUIRE(f.at("delta").as_string() == whole.substr(5 * l.seq));
    l.seq = seq;
  }
  void hear_done(const json_object& f, lane& l, std::uint32_t seq) {
    job& j = jobs_[l.job];
    REQUIRE(seq == l.seq);
    j.state = job::known::over;
    j.cancelled = f.at("status") == "cancelled";
    REQUIRE((j.cancelled || seq == most_tokens));
    l.is_open = false;
  }

  grounds& g_;
  std::shared_ptr<bare_session> session_;
  std::map<std::string, lane> lanes_;  // of this socket
  std::vector<job> jobs_;
  std::vector<std::uint64_t> asked_;
  std::uint64_t seed_ = 0;
  std::uint32_t seen_ = 0;  // tokens of the last job that lane a has shown
  std::chrono::steady_clock::time_point clock_{};
  answers told_;  // by the last act
  bool may_be_done_ = false;
};

void judge(grounds& g, const std::vector<act>& word) {
  std::string said;
  client c(g);
  for (const act a : word) {
    said += std::string(" ") + act_names[static_cast<int>(a)];
    CAPTURE(said);
    const answers wanted = c.expected(a);
    const bool had_lanes = c.has_open_lanes();
    c.perform(a);
    if (a == act::wait || a == act::finish) {
      REQUIRE(std::ranges::all_of(c.told(), [](const auto& t) { return t.starts_with("done "); }));
      REQUIRE((a == act::wait || !c.has_open_lanes()));
      REQUIRE((had_lanes || c.told().empty()));
    } else {
      REQUIRE(c.told_as(wanted));
    }
  }
  CAPTURE(said);
  c.conclude();
}

constexpr auto acts = static_cast<std::size_t>(act::count);

}  // namespace

TEST_CASE("orders: every order of four things that a client says and does is answered as it must be") {
  grounds g(1);
  for (std::size_t number = 0; number < acts * acts * acts * acts; ++number) {
    std::vector<act> word;
    for (std::size_t rest = number, i = 0; i < 4; ++i, rest /= acts)
      word.push_back(static_cast<act>(rest % acts));
    judge(g, word);
  }
}

TEST_CASE("orders: long random orders are answered as they must be") {
  for (std::uint64_t n = 1; n <= rounds(40); ++n) {
    const auto seed = drawn_seed(n);
    INFO("seed " << seed);
    grounds g(seed);
    for (int i = 0; i < 20; ++i) {
      std::vector<act> word(20);
      for (act& a : word) a = static_cast<act>(g.here.random() % acts);
      judge(g, word);
    }
  }
}

}  // namespace weir::tests::ws_orders_test
