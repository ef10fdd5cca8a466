#include "net/job_feed.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "core/insist.h"
#include "net/http/kept_answer.h"
#include "net/resumed_job.h"

namespace weir::net {
namespace {

namespace asio = boost::asio;
using phase = actors::job_stream::phase;

// Limits of a piece: bytes of its text, and tokens (for a log with logprobs, logprobs). Its first character
// may exceed them. The choices of one follower share them, and have at least the smaller ones each.
constexpr std::size_t most_bytes = 64 * 1024, least_bytes = 1024;
constexpr std::uint32_t most_tokens = 4096, least_tokens = 64;

// Their messages are those of the search.
constexpr follow_refusal not_resumable{not_resumable_code, {}, "response_id"};
constexpr follow_refusal fleet_is_away{unreachable_fleet_code, {}, {}};
constexpr follow_refusal too_many_searches{"rate_limited", {}, {}};

}  // namespace

// The part of a feed on the job's shard: gives pieces of the log to one follower. Members are called on that
// shard, except ask().
class job_feed : public std::enable_shared_from_this<job_feed> {
 public:
  struct question {
    core::job_id id;
    actors::principal who;
    std::uint64_t after;
    ws::follow_wishes how;
    std::size_t choices;  // as in followed_job::open(); so is in_passing
    bool in_passing;
  };
  job_feed(std::shared_ptr<server_state> all, hub& here, std::weak_ptr<followed_job> to, question q)
      : all_(std::move(all)),
        here_(here.weak_from_this()),
        back_(here.executor()),
        to_(std::move(to)),
        question_(std::move(q)) {}

  // Looks for the job on the shard with this number, then on the next ones. Any thread.
  void ask(std::size_t shard) {
    if (shard >= all_->hubs.size() && !asked_fleet_) return ask_fleet();
    const auto home = shard < all_->hubs.size() ? all_->hubs[shard].lock() : nullptr;
    if (!home) return refuse(no_such_job);
    core::insist([&] {
      asio::post(home->executor(), [self = shared_from_this(), home, shard] { self->look(home, shard); });
    });
  }

  // The follower has used up the last piece.
  void more() {
    wanted_ = true;
    give();
  }
  void ack(std::uint32_t seq) {
    if (place_) place_.ack(seq);
  }
  void cancel() {
    if (place_) stream()->cancel();
  }
  // The follower is gone. An executor may still run an earlier request of the follower after this call.
  void close() {
    stream()->leave(handle_);
    place_ = {};
  }

 private:
  const std::shared_ptr<actors::job_stream>& stream() const { return place_.job().stream; }

  void look(const std::shared_ptr<hub>& home, std::size_t shard) {
    auto found = home->jobs().follow(question_.id, question_.who, question_.after, question_.how,
                                     question_.in_passing || brought_);
    const kept_jobs::follower until_then = std::move(brought_);
    if (const auto* no = std::get_if<follow_refusal>(&found))
      return no->code == no_such_job.code ? ask(shard + 1) : refuse(*no);
    place_ = std::move(std::get<kept_jobs::follower>(found));
    next_ = static_cast<std::uint32_t>(question_.after);
    begin(home);
    handle_ = stream()->follow([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->look_at_news();
    });
    look_at_news();
  }

  // No shard of this process has the job.
  void ask_fleet() {
    asked_fleet_ = true;
    actors::service& service = all_->service;
    if (!service.finds_elsewhere()) return refuse(no_such_job);
    actors::job_search s;
    s.id = question_.id;
    s.who = question_.who;
    s.accounts = all_->bearers.accounts_of(question_.who.key);
    s.shard = back_;
    s.done = [self = shared_from_this()](actors::job_search::answer a) { self->hear(a); };
    service.find_elsewhere(std::move(s));
  }

  // On the follower's shard.
  void hear(actors::job_search::answer& a) {
    using end = actors::job_search::end;
    if (a.how == end::found) return take_in(std::move(*a.job));
    if (a.how == end::here) return ask(0);
    if (a.how == end::nothing) return refuse(no_such_job);
    const bool cannot = a.why->code == core::errc::not_supported;
    const bool later = a.why->code == core::errc::unavailable;
    refuse(cannot ? not_resumable : later ? fleet_is_away : too_many_searches, a.why->message);
  }

  // The job goes on here. Its tokens are on their way: those that the client has come first.
  void take_in(actors::found_job found) {
    const auto home = here_.lock();
    if (!home || home->server().stopping) return refuse(no_such_job);
    const auto stream = found.stream;
    const std::uint32_t tokens = found.tokens;
    auto job = kept_job_of(*all_, std::move(found));
    if (!job) return refuse(no_such_job);
    const terms_ptr terms = job->answer ? terms_of(*job->answer) : nullptr;
    if (terms && terms->stored) keep_when_ended(all_->responses, terms, stream);
    brought_ = home->jobs().keep(std::move(*job));
    look_when_there(home, stream, tokens);
  }

  void look_when_there(const std::shared_ptr<hub>& home, const std::shared_ptr<actors::job_stream>& stream,
                       std::uint32_t tokens) {
    const auto is_there = [this, tokens](const actors::job_stream& s) {
      return s.state() == phase::done || (s.log().size() >= tokens && s.published() >= question_.after);
    };
    if (is_there(*stream)) return look(home, all_->hubs.size());
    handle_ = stream->follow([self = shared_from_this(), weak = std::weak_ptr(stream), home, is_there] {
      const auto s = weak.lock();
      const bool is_wanted = !self->to_.expired();
      if (!s || !self->brought_ || (is_wanted && !is_there(*s))) return;
      const auto me = self;  // leave() destroys this function
      const auto where = home;
      s->leave(me->handle_);
      if (is_wanted) return me->look(where, me->all_->hubs.size());
      me->brought_ = {};  // its client has left again: the job has its grace
    });
  }

  void look_at_news() {
    if (!place_) return;
    if (question_.choices > 0 && !told_admission_) tell_admission();
    give();
  }

  void tell_admission() {
    const actors::job_stream& job = *stream();
    if (job.state() == phase::pending) return;
    told_admission_ = true;
    if (job.model().empty()) return refuse(no_such_job);  // refused, or cancelled before a model took it
    followed_job::admission how{admitted_job::of(job), job.tokenizer(), {}, 0};
    if (question_.after == 0) how.prompt_text = job.prompt_text();
    if (job.log().has_logprobs()) how.characters = characters_of(job.log().text_of(0, next_));
    tell([how = std::move(how)](followed_job& to) { to.admit(how); });
  }

  void begin(const std::shared_ptr<hub>& home) {
    const kept_job& job = place_.job();
    followed_job::beginning b;
    b.how = question_.how.over(job.as_created);
    b.metadata = job.metadata;
    b.head = stream()->published();
    b.status = stream()->state() == phase::done ? stream()->ended().status() : "in_progress";
    b.created = stream()->created();
    b.tokenizer = stream()->tokenizer();
    b.pause_on_lag = job.pause_on_lag;
    b.answer = job.answer;
    b.home = home;
    // A follower that is gone by then has not called close(), so this handler does.
    core::insist([&] {
      asio::post(back_, [to = to_, b, self = shared_from_this()] {
        if (const auto follower = to.lock()) return follower->begin(b, self->question_.after);
        core::insist([&] { asio::post(b.home->executor(), [self] { self->close(); }); });
      });
    });
  }

  // Gives the next piece, if the follower waits for one and there is one.
  void give() {
    if (!wanted_ || !place_) return;
    const auto& log = stream()->log();
    const bool ended = stream()->state() == phase::done;
    if (next_ == log.whole() && !ended) return;
    wanted_ = false;
    const auto sharers = static_cast<std::uint32_t>(std::max(question_.choices, std::size_t{1}));
    const std::uint32_t room = std::max(least_tokens, most_tokens / sharers),
                        most = std::max(1u, room / std::max(1u, log.logprobs_each()));
    const std::size_t bytes = std::max(least_bytes, most_bytes / sharers);
    const std::uint32_t end = log.whole_part(next_, std::min(log.piece_end(next_, bytes), next_ + most));
    actors::token_log piece;
    piece.append_part(log, next_, end);
    next_ = end;
    std::optional<actors::outcome> last;
    if (ended && end == log.whole()) last = stream()->ended();
    tell([piece = std::move(piece), last = std::move(last)](followed_job& to) { to.take(piece, last); });
  }

  void refuse(const follow_refusal& why, std::string text = {}) {
    tell([why, text = std::move(text)](followed_job& to) { to.refuse(why, text); });
  }

  template <class F>
  void tell(F what) {
    core::insist([&] {
      asio::post(back_, [to = to_, what] {
        if (const auto follower = to.lock()) what(*follower);
      });
    });
  }

  const std::shared_ptr<server_state> all_;
  const std::weak_ptr<hub> here_;  // of the follower
  const actors::executor back_;
  const std::weak_ptr<followed_job> to_;
  const question question_;
  bool asked_fleet_ = false;
  kept_jobs::follower brought_;  // of a job that came from another gateway, until its follower follows it
  kept_jobs::follower place_;
  std::uint32_t next_ = 0;    // number of the job's tokens before the next piece
  std::uint64_t handle_ = 0;  // of the stream's reader
  bool wanted_ = false;       // the follower waits for a piece
  bool told_admission_ = false;
};

admitted_job admitted_job::of(const actors::job_stream& job) {
  const auto warnings = job.warnings();
  return {job.id(), job.model(), job.fingerprint(), {warnings.begin(), warnings.end()}, job.prompt_tokens()};
}

std::shared_ptr<followed_job> followed_job::open(hub& here, const core::job_id& id,
                                                 const actors::principal& who, std::uint64_t after,
                                                 const ws::follow_wishes& how, std::function<void()> changed,
                                                 std::size_t choices, bool in_passing) {
  auto job = std::make_shared<followed_job>(std::move(changed), here.server().service.memory());
  job->feed_ = std::make_shared<job_feed>(here.server_ptr(), here, job,
                                          job_feed::question{id, who, after, how, choices, in_passing});
  job->feed_->ask(0);
  return job;
}

// Before the first answer, job_feed::begin() finds that the follower is gone, and closes the feed.
followed_job::~followed_job() {
  if (begun_) ask_feed([](job_feed& feed) { feed.close(); });
}

template <class F>
void followed_job::ask_feed(F what) {
  core::insist([&] { asio::post(begun_->home->executor(), [feed = feed_, what] { what(*feed); }); });
}

void followed_job::used_up(std::uint32_t shown) {
  if (!begun_ || waiting_ || ended_) return;
  if (shown == base_ + log_.size() && !keeps_pieces_) {
    log_ = {};
    base_ = shown;
  }
  waiting_ = true;
  ask_feed([](job_feed& feed) { feed.more(); });
}

void followed_job::ack(std::uint32_t seq) {
  if (begun_->pause_on_lag) ask_feed([seq](job_feed& feed) { feed.ack(seq); });
}

void followed_job::cancel() {
  if (begun_) return ask_feed([](job_feed& feed) { feed.cancel(); });
  cancelled_ = true;
}

void followed_job::refuse(const follow_refusal& why, std::string text) {
  refused_ = why;
  refusal_text_ = std::move(text);
  if (!refusal_text_.empty()) refused_->message = refusal_text_;
  changed_();
}

void followed_job::begin(beginning b, std::uint64_t after) {
  begun_ = std::move(b);
  base_ = static_cast<std::uint32_t>(after);
  if (cancelled_) cancel();
  changed_();
}

void followed_job::admit(admission how) {
  admitted_ = std::move(how);
  memory_.force(admitted_->prompt_text.size());
  changed_();
}

void followed_job::take(actors::token_log piece, std::optional<actors::outcome> ended) {
  waiting_ = false;
  log_.append_part(piece, 0, piece.size());
  memory_.force(log_.memory() + (admitted_ ? admitted_->prompt_text.size() : 0));
  ended_ = std::move(ended);
  changed_();
}

}  // namespace weir::net
