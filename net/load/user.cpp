#include "net/load/user.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace weir::load {

using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

constexpr int slow_receive_buffer = 8 * 1024;
constexpr auto breath = std::chrono::milliseconds(200);  // after a connection that failed, or a refusal
constexpr int most_reconnects = 8;                       // in a row, for one resume
constexpr double first_back_off_s = 0.025, longest_back_off_s = 2;
constexpr std::size_t most_reserved = 4096;              // frames
// How long followers may need for the end of an answer, and the server for a cancel at the end of the run.
constexpr auto follower_patience = std::chrono::seconds(5);
constexpr auto cancel_patience = std::chrono::seconds(1);

steady_clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(seconds));
}

double drawn(worker_state& shared, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(shared.random);
}

// Reads what is left of an answer that nobody wants any more.
struct rest_of {
  answer_reader& answer;
  talk& from;
  micros at;
  bool operator()(std::size_t) {
    answer.understand(from, at);
    return !answer.over();
  }
};

}  // namespace

user::user(worker_state& shared, std::size_t n)
    : shared_(shared), number_(n), wake_(shared.io), to_(shared, n) {
  const double share = shared.w.slow_share;
  slow_ = std::floor(static_cast<double>(n + 1) * share) > std::floor(static_cast<double>(n) * share);
  for (std::size_t i = 0; i < shared.w.followers; ++i) {
    followers_.push_back(std::make_unique<follower>(shared, wake_));
    boost::asio::co_spawn(shared.io, followers_.back()->live(), boost::asio::detached);
  }
}

task<void> user::live() {
  const std::size_t streams = shared_.w.streams;
  if (streams)
    co_await sleep_until(shared_.w.zero + duration_of(shared_.w.ramp_s * static_cast<double>(number_) /
                                                    static_cast<double>(streams)));
  while (!shared_.stopping) {
    if (streams) {  // closed loop: the request is scheduled when there is a connection
      const bool there = co_await connected();
      if (!there) continue;
      request r;
      r.index = shared_.asked++ * shared_.w.parts + shared_.w.part;
      r.at = shared_.now();
      next_ = r;
    }
    while (!next_ && !shared_.stopping) co_await sleep_until(steady_clock::time_point::max());
    if (!next_) break;
    const request r = *next_;
    next_.reset();
    co_await serve(r);
    if (streams && failed_) co_await sleep_until(steady_clock::now() + breath);
    if (!streams && !shared_.stopping) shared_.idle.push_back(this);
  }
  to_.close();
}

void user::give(const request& r) {
  next_ = r;
  wake_.cancel();
}

bool user::streams() const {
  if (!answer_ || answer_->over() || cut_off_) return false;
  return shared_.w.resume ? listening_ && !dropped_ && !answer_->response_id().empty() : to_.exists();
}

void user::drop() {
  if (!streams()) return;
  if (shared_.w.resume) {
    answer_->record().drop(shared_.now());
    dropped_ = true;
  } else {
    answer_->record().how = ending::dropped;
    cut_off_ = true;
  }
  to_.cut();
  wake_.cancel();
}

// Jobs that outlive their connections are cancelled before the connection is closed.
void user::hurry() {
  if (shared_.w.how.outlives) {
    to_.interrupt();
  } else {
    to_.cut();
  }
  wake_.cancel();
  for (auto& f : followers_) f->hurry();
}

void user::end_silence(steady_clock::time_point now) {
  const double most = shared_.w.silence_s;
  if (most <= 0 || !silent_since_ || now - *silent_since_ < duration_of(most)) return;
  silent_since_.reset();
  too_silent_ = true;
  to_.cut();
}

std::string user::silence() const {
  return fmt::format("the server sent nothing for {} s", shared_.w.silence_s);
}

// Connects anew. Returns an error message; empty: there is a connection.
task<std::string> user::open_line() {
  too_silent_ = false;
  silent_since_ = steady_clock::now();
  std::string why = co_await to_.open(slow_ ? slow_receive_buffer : 0);
  silent_since_.reset();
  if (!why.empty() && too_silent_) why = silence();
  co_return why;
}

task<void> user::sleep_until(steady_clock::time_point t) {
  if (shared_.stopping) co_return;
  wake_.expires_at(t);
  error_code ec;
  co_await wake_.async_wait(boost::asio::redirect_error(use_task, ec));
}

// Makes sure that there is a connection on which a request can be sent. After a failure, it waits `breath`
// and returns false; in a closed loop the failure counts as a failed request.
task<bool> user::connected() {
  if (to_.ready()) co_return true;
  std::string why = co_await open_line();
  if (why.empty()) co_return true;
  if (shared_.stopping) co_return false;
  last_error_ = why;
  if (shared_.w.streams) {
    stream_record r;
    r.scheduled = r.sent = r.ended = shared_.now();
    r.how = ending::failed;
    r.error = std::move(why);
    shared_.fold(r);
  }
  co_await sleep_until(steady_clock::now() + breath);
  co_return false;
}

task<void> user::serve(request asked) {
  stream_record r;
  r.index = asked.index;
  r.scheduled = r.sent = asked.at;
  r.slow = slow_;
  r.frames = std::exchange(spare_, {});
  const bool keeps_text = !followers_.empty() || shared_.w.ask->prompt_of(asked.index).has_value();
  answer_.emplace(std::move(r), keeps_text, shared_.w.resume);
  cut_off_ = dropped_ = following_ = false;
  ++shared_.counts.streams;
  const bool there = co_await connected();
  auto& record = answer_->record();
  if (there) {
    co_await exchange(asked);
  } else if (!cut_off_) {
    record.how = shared_.stopping ? ending::cut : ending::failed;
    record.error = last_error_;
  }
  --shared_.counts.streams;
  record.ended = shared_.now();
  failed_ = record.how == ending::failed || record.how == ending::refused;
  if (following_) co_await await_followers();
  shared_.fold(record);
  add_followers();
  if (record.how == ending::cut && shared_.w.how.outlives) co_await abandon();
  if (!answer_->over() || cut_off_ || dropped_ || record.how == ending::failed) to_.close();
  spare_ = std::move(record.frames);
  spare_.clear();
  answer_.reset();
}

task<void> user::exchange(request asked) {
  const question q = shared_.w.ask->ask(asked.index);
  auto& record = answer_->record();
  record.frames.reserve(std::min<std::size_t>(q.max_tokens, most_reserved));
  cancel_after_ = 0;
  if (drawn(shared_, 0, 1) < shared_.w.cancel_share)
    cancel_after_ = std::uniform_int_distribution<std::uint64_t>(1, q.max_tokens)(shared_.random);
  std::string asks = to_.speech().ask(q);
  record.sent = shared_.now();
  co_await send_and_listen(std::move(asks));
  while (can_go_on() && !shared_.stopping) {
    if (!dropped_) record.cut(shared_.now());
    const bool there = co_await reconnected();
    if (!there) break;
    dropped_ = false;
    std::string resumes = answer_->resume(to_.speech());
    co_await send_and_listen(std::move(resumes));
  }
  if (answer_->over() || cut_off_) co_return;  // record.how is set already
  if (shared_.stopping) {
    record.how = ending::cut;
  } else if (too_silent_) {
    answer_->fail(silence());
  } else {
    answer_->lost(to_.speech());
  }
}

// Whether an answer that has not ended can be resumed on another connection.
bool user::can_go_on() const {
  if (answer_->over() || cut_off_) return false;
  return dropped_ || (shared_.w.resume && !answer_->response_id().empty());
}

// Connects again after a drop or a cut, with a growing and jittered pause before each attempt. False:
// the run ends, or too many attempts have failed, and then the answer has failed, too.
task<bool> user::reconnected() {
  double pause = first_back_off_s;
  for (int i = 0; i < most_reconnects; ++i, pause = std::min(2 * pause, longest_back_off_s)) {
    co_await sleep_until(steady_clock::now() + duration_of(pause * drawn(shared_, 0.5, 1.5)));
    if (shared_.stopping) co_return false;
    std::string why = co_await open_line();
    if (why.empty()) co_return true;
    last_error_ = std::move(why);
  }
  if (!shared_.stopping) answer_->fail(fmt::format("not resumed: {}", last_error_));
  co_return false;
}

bool user::reading() const {
  return !answer_->over() && !answer_->left() && !cut_off_ && !dropped_ && !shared_.stopping;
}

// Sends, and reads until the answer is over, the connection has ended, or the user has closed it.
task<void> user::send_and_listen(std::string words) {
  listening_ = true;
  too_silent_ = false;
  silent_since_ = steady_clock::now();
  error_code ec;
  ec = co_await to_.write(words);
  taker each{this};
  while (!ec && reading()) {
    if (slow_ && shared_.w.read_rate <= 0) {  // this user never reads
      co_await sleep_until(steady_clock::time_point::max());
      continue;
    }
    read_ = 0;
    silent_since_ = steady_clock::now();
    co_await to_.listen(each, ec, at_once());
    silent_since_.reset();
    words = std::exchange(words_, {});
    if (!ec && !words.empty() && !cut_off_ && !dropped_) ec = co_await to_.write(words);
    if (slow_ && !ec)
      co_await sleep_until(steady_clock::now() +
                           duration_of(static_cast<double>(read_) / shared_.w.read_rate));
  }
  silent_since_.reset();
  listening_ = false;
}

// The run ends before the answer does: cancels the job, which would otherwise outlive its connections.
task<void> user::abandon() {
  timer limit(shared_.io);
  limit.expires_after(cancel_patience);
  limit.async_wait([this](error_code ec) {
    if (!ec) to_.cut();
  });
  std::string words;
  if (dropped_ || !to_.exists()) {
    if (answer_->response_id().empty()) co_return;  // it was never asked for
    const std::string why = co_await to_.open(0);
    if (!why.empty()) co_return;
    words = answer_->resume(to_.speech());
  }
  words += to_.speech().cancel();
  error_code ec;
  ec = co_await to_.write(words);
  rest_of rest{*answer_, to_.speech(), shared_.now()};
  if (!ec) co_await to_.listen(rest, ec);
}

// Most bytes of one read. A slow reader reads at most the bytes of a tenth of a second.
std::size_t user::at_once() const {
  if (!slow_) return SIZE_MAX;
  return std::max<std::size_t>(static_cast<std::size_t>(shared_.w.read_rate / 10), 1);
}

// Takes what was read; returns whether to read on at once. A slow reader pauses first.
bool user::take(std::size_t n) {
  read_ = n;
  silent_since_ = steady_clock::now();
  understand();
  words_ += reply();
  return !slow_ && words_.empty() && reading();
}

void user::understand() {
  const micros at = shared_.now();
  auto& r = answer_->record();
  const auto tokens = r.tokens;
  const bool resumed = r.resumes > 0;
  const micros before = r.frames.empty() ? -1 : r.frames.back().at;
  const auto frames = answer_->understand(to_.speech(), at);
  shared_.count_tokens(r.tokens - tokens);
  if (!following_ && !followers_.empty() && !answer_->response_id().empty()) {
    following_ = true;
    for (auto& f : followers_) f->follow(r.index, answer_->response_id());
  }
  if (frames == 0 || slow_) return;
  if (before >= 0 && !resumed) shared_.recent.add(static_cast<double>(at - before) / 1000);
  ++shared_.reads;
  shared_.frames += frames;
}

// The bytes to be sent now: pongs and acknowledgements, and a cancel if its token has arrived.
std::string user::reply() {
  std::string words = to_.speech().take_to_send();
  auto& record = answer_->record();
  if (!cancel_after_ || answer_->over() || record.cancel_sent || record.tokens < cancel_after_) return words;
  const std::string cancel = to_.speech().cancel();
  if (cancel.empty()) {  // the protocol has no cancel: the connection is closed
    record.how = ending::cancelled;
    cut_off_ = true;
    to_.cut();
    return {};
  }
  record.cancel_sent = shared_.now();
  return words + cancel;
}

// ---- followers

bool user::followed() const {
  return std::ranges::none_of(followers_, [](const auto& f) { return f->busy(); });
}

// If the user has seen the end of the answer, waits at most follower_patience until the followers have seen
// it. Otherwise ends the followers at once.
task<void> user::await_followers() {
  const bool whole = answer_->over() && !failed_;
  const auto until = steady_clock::now() + follower_patience;
  while (whole && !followed() && !shared_.stopping && steady_clock::now() < until)
    co_await sleep_until(until);
  for (auto& f : followers_) f->let_go(whole && !shared_.stopping ? "it saw no end of the answer" : "");
  while (!followed() && !shared_.stopping) co_await sleep_until(steady_clock::time_point::max());
}

void user::add_followers() {
  if (!following_) return;
  for (auto& f : followers_)
    if (!f->busy()) shared_.fold_follower(answer_->record(), f->record());
}

}  // namespace weir::load
