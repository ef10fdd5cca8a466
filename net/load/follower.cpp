#include "net/load/follower.h"

namespace weir::load {

using boost::system::error_code;
using std::chrono::steady_clock;

task<void> follower::live() {
  while (!shared_.stopping) {
    if (busy_) {
      co_await read_along();
      busy_ = false;
      owner_.cancel();
      continue;
    }
    wake_.expires_at(steady_clock::time_point::max());
    error_code ec;
    co_await wake_.async_wait(boost::asio::redirect_error(use_task, ec));
  }
  to_.close();
}

void follower::follow(std::uint64_t index, std::string response_id) {
  stream_record r;
  r.index = index;
  if (answer_) r.frames = std::move(answer_->record().frames);  // their memory
  r.frames.clear();
  answer_.emplace(std::move(r), true);
  response_id_ = std::move(response_id);
  busy_ = true;
  gone_ = false;
  wake_.cancel();
}

void follower::let_go(std::string why) {
  if (!busy_) return;
  gone_ = true;
  if (!why.empty()) answer_->fail(std::move(why));
  to_.cut();
}

void follower::hurry() {
  to_.cut();
  wake_.cancel();
}

task<void> follower::read_along() {
  std::string why;
  if (!to_.ready()) why = co_await to_.open(0);
  if (!why.empty()) {
    if (!gone_ && !shared_.stopping) answer_->fail(std::move(why));
    co_return;
  }
  const std::string asks = answer_->follow(to_.speech(), response_id_);
  error_code ec;
  ec = co_await to_.write(asks);
  taker each{this};
  while (!ec && !answer_->over() && !gone_ && !shared_.stopping) {
    co_await to_.listen(each, ec);
    const std::string words = std::exchange(words_, {});
    if (!ec && !words.empty()) ec = co_await to_.write(words);
  }
  if (!answer_->over() && !gone_ && !shared_.stopping) answer_->lost(to_.speech());
  const bool whole = answer_->over() && answer_->record().how != ending::failed;
  if (!whole) to_.close();
}

bool follower::take(std::size_t) {
  answer_->understand(to_.speech(), shared_.now());
  words_ += to_.speech().take_to_send();
  return words_.empty() && !answer_->over() && !gone_ && !shared_.stopping;
}

}  // namespace weir::load
