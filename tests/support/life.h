// life.h — one job and its client in a world: asked for, read fast or slowly, cancelled, deserted or late,
// through the protocol that sockets speak and the service behind it. judge() says whether it was served as
// promised.
//
// Thread safety: none; everything on the world's thread.
#pragma once

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "net/hub.h"
#include "net/ws/ws_lane.h"
#include "tests/support/sim_text.h"
#include "tests/support/world.h"

namespace weir::tests {

// How clients behave. `..._one_in`: a client does it with a chance of one in this number; 0: never.
struct habits {
  unsigned slow_one_in = 3, cancel_one_in = 4, desert_one_in = 6;
  unsigned drop_one_in = 4;    // their socket is lost, and they resume on another one
  unsigned window_one_in = 3;  // they acknowledge what they read
  core::duration patience = std::chrono::milliseconds(1500);  // they cancel, leave or are lost in this time
  bool faults = false;                                        // the device may fail: errors are no surprise
};

// One job and its client. Frames are judged as a client sees them: by what they add up to.
class life : public std::enable_shared_from_this<life> {
 public:
  life(world& w, std::shared_ptr<net::hub> h) : world_(w), hub_(std::move(h)) {}

  // Submits `request` and behaves as `h` says. Keeps the request's seed, limit and stop string for judge().
  void begin(actors::request request, const habits& h) {
    auto& random = world_.random;
    request.sampling.seed = seed_ = random() % 1000000;
    max_tokens_ = static_cast<std::uint32_t>(*request.max_tokens);
    if (!request.stop.empty()) stop_ = request.stop.front();
    may_time_out_ = request.deadline.has_value();
    may_fail_ = h.faults;
    net::ws::response_create c;
    c.id = "l";
    c.request = std::move(request);
    c.cancel_on_disconnect = cancel_when_lost_ = chance(2);
    if (chance(h.window_one_in)) {
      c.how.window = 1 + random() % 40;
      c.request.may_pause = chance(2);
      acks_after_ = std::chrono::milliseconds(random() % 300);
    }
    if (chance(h.slow_one_in)) reads_every_ = std::chrono::milliseconds(1 + random() % 500);

    net::kept_job job;
    job.as_created = c.how.over({});
    job.cancel_when_left = c.cancel_on_disconnect;
    job.pause_on_lag = c.request.may_pause;
    job.stream = hub_->server().service.submit(c.request, world_.get_executor(), told());
    id_ = job.stream->id();
    windowed_ = job.as_created.window > 0;
    lane_.emplace(std::move(c), hub_->jobs().keep(std::move(job)));
    const auto moment = [&] {
      return core::duration(static_cast<std::int64_t>(random() % h.patience.count()));
    };
    if (chance(h.cancel_one_in)) later(moment(), &life::cancel);
    if (chance(2 * h.cancel_one_in)) later(moment(), &life::cancel_by_id);
    if (chance(h.desert_one_in)) later(moment(), &life::desert);
    for (int i = 0; i < 3; ++i)
      if (chance(h.drop_one_in)) later(moment(), &life::drop);
  }

  bool over() const { return !lane_ && !away_; }
  unsigned resumed() const { return resumed_; }
  const core::job_id& id() const { return id_; }

  const std::string& text() const { return text_; }
  double queued_ms() const { return queued_ms_; }

  // How the job ended, as its client knows.
  const std::string& ending() const {
    static const std::string deserted = "deserted";
    return deserted_ ? deserted : refused_.empty() ? reason_ : refused_;
  }

  // Checks that the client was served as promised. Called when nothing can happen any more.
  void judge() const {
    CAPTURE(seed_, max_tokens_, stop_, reason_, seq_, text_.size());
    REQUIRE(endings_ == (deserted_ ? 0 : 1));
    if (deserted_) return;
    if (!refused_.empty()) {
      REQUIRE((refused_ == "overloaded" || may_fail_));
      return;
    }
    const std::string whole = sim_text(seed_, max_tokens_);
    REQUIRE(whole.starts_with(text_));
    const auto stop_at = stop_.empty() ? std::string::npos : whole.find(stop_);
    if (reason_ == "length") {
      REQUIRE(seq_ == max_tokens_);
      REQUIRE(text_ == whole);
      REQUIRE(stop_at == std::string::npos);
    } else if (reason_ == "stop") {
      REQUIRE(text_ == whole.substr(0, stop_at));
    } else {
      REQUIRE(((reason_ == "timeout" && may_time_out_) || (reason_ == "cancel" && cancelled_) ||
               (reason_ == "error" && may_fail_)));
      REQUIRE(text_.size() <= 5 * std::size_t{seq_});
    }
  }

 private:
  bool chance(unsigned one_in) { return one_in > 0 && world_.random() % one_in == 0; }

  std::function<void()> told() {
    return [me = weak_from_this()] {
      if (auto self = me.lock()) self->news();
    };
  }

  void later(core::duration delay, void (life::*what)()) {
    world_.after(delay, [me = weak_from_this(), what] {
      if (auto self = me.lock(); self && (self->lane_ || self->away_)) ((*self).*what)();
    });
  }

  void cancel() {
    if (!lane_) return;
    cancelled_ = true;
    lane_->cancel();
  }

  void cancel_by_id() {
    cancelled_ = true;
    hub_->server().service.cancel_job({}, id_, world_.get_executor(), [](const auto&) {});
  }

  // Leaves the job, as a session does whose socket is gone.
  void desert() {
    deserted_ = true;
    away_ = false;
    lane_.reset();
  }

  // Loses the socket. A client cannot resume a job that ends with the socket, or whose id it does not know.
  void drop() {
    if (away_) return;
    if (!created_ || cancel_when_lost_) return desert();
    lane_.reset();
    away_ = true;
    later(std::chrono::milliseconds(world_.random() % 400), &life::come_back);
  }
  void come_back() {
    if (!std::exchange(away_, false)) return;
    ++resumed_;
    acked_ = seq_;
    net::ws::response_resume r;
    r.id = "l";
    r.response_id = id_.text();
    r.after = seq_;
    auto job = net::followed_job::open(*hub_, id_, {}, seq_, r.how, told());
    lane_.emplace(std::move(r), std::move(job));
  }
  void acknowledge() {
    will_ack_ = false;
    if (!lane_) return;
    REQUIRE(lane_->ack(acked_ = seq_, world_.now()));
    news();
  }

  void news() {
    if (!lane_ || std::exchange(will_read_, true)) return;
    later(reads_every_, &life::read);
  }

  void read() {
    will_read_ = false;
    for (std::string frame; lane_; frame.clear()) {
      const auto next = lane_->take(frame, scratch_);
      if (next == net::ws::lane::next::nothing) {
        if (windowed_ && seq_ > acked_ && !std::exchange(will_ack_, true))
          later(acks_after_, &life::acknowledge);
        return;
      }
      understand(boost::json::parse(frame).as_object());
      if (next == net::ws::lane::next::last_frame) lane_.reset();
    }
  }

  void understand(const boost::json::object& frame) {
    const auto type = frame.at("type").as_string();
    REQUIRE(endings_ == 0);
    if (type == "response.created") {
      REQUIRE_FALSE(std::exchange(created_, true));
    } else if (type == "response.resumed") {
      REQUIRE(frame.at("after").to_number<std::uint32_t>() == seq_);
      REQUIRE(frame.at("seq").to_number<std::uint32_t>() >= seq_);
    } else if (type == "response.delta") {
      REQUIRE(created_);
      const auto n = frame.contains("n") ? frame.at("n").to_number<std::uint32_t>() : 1;
      REQUIRE(frame.at("seq").to_number<std::uint32_t>() == seq_ + n);
      seq_ += n;
      text_ += frame.at("delta").as_string();
    } else if (type == "response.done") {
      ++endings_;
      reason_ = frame.at("finish_reason").as_string();
      queued_ms_ = frame.at("timing").at("queue_ms").to_number<double>();
      REQUIRE(frame.at("seq").to_number<std::uint32_t>() == seq_);
      REQUIRE((created_ || reason_ == "cancel"));
    } else {
      ++endings_;
      REQUIRE_FALSE(created_);
      refused_ = frame.at("code").as_string();
    }
  }

  world& world_;
  std::shared_ptr<net::hub> hub_;
  core::job_id id_;
  std::optional<net::ws::lane> lane_;
  net::ws::scratch scratch_{.ids = &hub_->ids(), .clock = &world_};
  std::uint64_t seed_ = 0;
  std::uint32_t max_tokens_ = 0, seq_ = 0, acked_ = 0;
  std::string stop_, text_, reason_, refused_;
  core::duration reads_every_{};
  double queued_ms_ = 0;
  bool may_time_out_ = false, may_fail_ = false, cancelled_ = false, deserted_ = false, created_ = false,
       will_read_ = false, away_ = false, cancel_when_lost_ = false, windowed_ = false, will_ack_ = false;
  unsigned resumed_ = 0;
  core::duration acks_after_{};
  int endings_ = 0;
};

}  // namespace weir::tests
