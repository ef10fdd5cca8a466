#include "net/load/user.h"

#include <boost/asio/redirect_error.hpp>

namespace weir::load {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

constexpr int slow_receive_buffer = 8 * 1024;
constexpr auto breath = std::chrono::milliseconds(200);  // after a connection that failed, or a refusal

steady_clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

user::user(worker_state& shared, std::size_t n) : shared_(shared), number_(n), wake_(shared.io) {
  const double share = shared.w.slow_share;
  slow_ = std::floor(static_cast<double>(n + 1) * share) > std::floor(static_cast<double>(n) * share);
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
  hang_up();
}

void user::give(const request& r) {
  next_ = r;
  wake_.cancel();
}

void user::drop() {
  if (!line_ || !answer_ || cut_off_) return;
  answer_->record().how = ending::dropped;
  cut_off_ = true;
  line_->cut();
  wake_.cancel();
}

void user::hurry() {
  if (line_) line_->cut();
  wake_.cancel();
}

void user::hang_up() {
  if (line_) line_->cut();
  line_.reset();
  talk_.reset();
}

task<void> user::sleep_until(steady_clock::time_point t) {
  if (shared_.stopping) co_return;
  wake_.expires_at(t);
  error_code ec;
  co_await wake_.async_wait(asio::redirect_error(use_task, ec));
}

// Makes sure that there is a connection on which a request can be sent. After a failure, it waits `breath`
// and returns false; in a closed loop the failure counts as a failed request.
task<bool> user::connected() {
  if (line_ && talk_->reusable()) co_return true;
  hang_up();
  line_.emplace(shared_.io, shared_.w.tls, shared_.w.how.to.host);
  talk_.emplace(shared_.w.how, shared_.random());
  const error_code ec = co_await line_->open(shared_.w.to, slow_ ? slow_receive_buffer : 0);
  std::string why;
  if (ec) {
    why = fmt::format("cannot connect: {}", ec.message());
  } else {
    why = co_await shake_hands();
  }
  if (why.empty()) co_return true;
  hang_up();
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

// Opens the session; returns an error message, which is empty on success.
task<std::string> user::shake_hands() {
  if (talk_->opens_itself()) co_return std::string();
  const std::string hello = talk_->hello();
  error_code ec = co_await line_->write(hello);
  happening h;
  while (!ec) {
    if (talk_->next(h)) co_return h.is == happening::kind::opened ? std::string() : h.why;
    const std::size_t n = co_await line_->read(asio::buffer(bytes_), ec);
    talk_->feed({bytes_, n});
  }
  co_return fmt::format("no answer to the upgrade: {}", ec.message());
}

task<void> user::serve(request asked) {
  stream_record r;
  r.index = asked.index;
  r.scheduled = r.sent = asked.at;
  r.slow = slow_;
  answer_.emplace(std::move(r), shared_.w.ask->prompt_of(asked.index).has_value());
  cut_off_ = false;
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
  if (!answer_->over() || cut_off_ || record.how == ending::failed) hang_up();
  shared_.fold(record);
  answer_.reset();
}

task<void> user::exchange(request asked) {
  const question q = shared_.w.ask->ask(asked.index);
  auto& record = answer_->record();
  cancel_after_ = 0;
  if (std::uniform_real_distribution<double>(0, 1)(shared_.random) < shared_.w.cancel_share)
    cancel_after_ = std::uniform_int_distribution<std::uint64_t>(1, q.max_tokens)(shared_.random);
  const std::string asks = talk_->ask(q);
  record.sent = shared_.now();
  error_code ec = co_await line_->write(asks);
  while (!answer_->over() && !ec && !cut_off_ && !shared_.stopping) {
    if (slow_ && shared_.w.read_rate <= 0) {  // this user never reads
      co_await sleep_until(steady_clock::time_point::max());
      continue;
    }
    const std::size_t n = co_await line_->read(asio::buffer(bytes_, at_once()), ec);
    const micros at = shared_.now();
    if (n > 0) {
      talk_->feed({bytes_, n});
      understand(at);
      const std::string words = reply();
      if (!words.empty()) co_await line_->write(words);
    }
    if (slow_ && !ec)
      co_await sleep_until(steady_clock::now() + duration_of(static_cast<double>(n) / shared_.w.read_rate));
  }
  if (answer_->over() || cut_off_) co_return;  // record.how is set already
  if (shared_.stopping) {
    record.how = ending::cut;
  } else {
    answer_->lost(*talk_);
  }
}

// Most bytes of one read. A slow reader reads at most the bytes of a tenth of a second.
std::size_t user::at_once() const {
  if (!slow_) return sizeof bytes_;
  return std::clamp<std::size_t>(static_cast<std::size_t>(shared_.w.read_rate / 10), 1, sizeof bytes_);
}

void user::understand(micros at) {
  auto& r = answer_->record();
  const auto tokens = r.tokens;
  const auto before = r.frames.empty() ? std::optional<micros>() : r.frames.back().at;
  const auto frames = answer_->understand(*talk_, at);
  shared_.counts.tokens.fetch_add(r.tokens - tokens, std::memory_order_relaxed);
  if (frames == 0 || slow_) return;
  if (before) shared_.recent.add(static_cast<double>(at - *before) / 1000);
  ++shared_.reads;
  shared_.frames += frames;
}

// The bytes to be sent now: pongs, and a cancel if its token has arrived.
std::string user::reply() {
  std::string words = talk_->take_to_send();
  auto& record = answer_->record();
  if (!cancel_after_ || answer_->over() || record.cancel_sent || record.tokens < cancel_after_) return words;
  const std::string cancel = talk_->cancel();
  if (cancel.empty()) {  // the protocol has no cancel: the connection is closed
    record.how = ending::cancelled;
    cut_off_ = true;
    line_->cut();
    return {};
  }
  record.cancel_sent = shared_.now();
  return words + cancel;
}

}  // namespace weir::load
