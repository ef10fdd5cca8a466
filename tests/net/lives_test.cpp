// Ten thousand lives in virtual time: random jobs that are read fast or slowly, cancelled, deserted or late, through the
// protocol that sockets speak and the service behind it; and a drain at the end.
#include "tests/support/world.h"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <map>

#include "net/hub.h"
#include "net/ws_lane.h"
#include "tests/support/sim_text.h"

using namespace weir;
using namespace weir::tests;
using namespace std::chrono_literals;

namespace {

// One job and its client. Frames are judged as a client would: what they add up to, not how they were made.
class life : public std::enable_shared_from_this<life> {
 public:
  life(world& w, std::shared_ptr<net::hub> h) : world_(w), hub_(std::move(h)) {}

  void begin() {
    auto& random = world_.random;
    seed_ = random() % 1000000;
    max_tokens_ = 1 + static_cast<std::uint32_t>(random() % 150);
    net::ws::response_create c;
    c.id = "l";
    c.request.input = std::string(1 + random() % 400, static_cast<char>('a' + random() % 26));
    c.request.max_tokens = max_tokens_;
    c.request.seed = seed_;
    c.request.priority = static_cast<int>(random() % 3);
    if (chance(5)) c.request.deadline = std::chrono::milliseconds(1 + random() % 2000);
    if (chance(4)) c.request.stop = {stop_ = fmt::format("w{:02d}", random() % 100)};
    may_time_out_ = c.request.deadline.has_value();
    c.cancel_on_disconnect = chance(2);
    if (chance(3)) reads_every_ = std::chrono::milliseconds(1 + random() % 500);

    auto request = c.request;
    auto job = hub_->all().service.submit(std::move(request), world_.get_executor(), [me = weak_from_this()] {
      if (auto self = me.lock()) self->news();
    });
    id_ = job->id();
    lane_.emplace(std::move(c), std::move(job));
    const auto moment = [&] { return std::chrono::microseconds(random() % 1500000); };
    if (chance(4)) later(moment(), &life::cancel);
    if (chance(8)) later(moment(), &life::cancel_by_id);
    if (chance(6)) later(moment(), &life::desert);
  }

  bool over() const { return !lane_; }
  const core::job_id& id() const { return id_; }

  // How it ended, as its client knows.
  const std::string& ending() const {
    static const std::string deserted = "deserted";
    return deserted_ ? deserted : refused_.empty() ? reason_ : refused_;
  }

  // Once nothing can happen any more.
  void judge() const {
    CAPTURE(seed_, max_tokens_, stop_, reason_, seq_, text_.size());
    REQUIRE(endings_ == (deserted_ ? 0 : 1));
    if (deserted_) return;
    if (!refused_.empty()) {
      REQUIRE(refused_ == "overloaded");
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
      REQUIRE(((reason_ == "timeout" && may_time_out_) || (reason_ == "cancel" && cancelled_)));
      REQUIRE(text_.size() <= 5 * std::size_t{seq_});
    }
  }

 private:
  bool chance(unsigned one_in) { return world_.random() % one_in == 0; }

  void later(core::duration delay, void (life::*what)()) {
    world_.after(delay, [me = weak_from_this(), what] {
      if (auto self = me.lock(); self && self->lane_) ((*self).*what)();
    });
  }

  void cancel() {
    cancelled_ = true;
    lane_->job()->cancel();
  }

  void cancel_by_id() {
    cancelled_ = true;
    hub_->all().service.cancel_job(id_, world_.get_executor(), [](const auto&) {});
  }

  // As a session does whose socket is gone.
  void desert() {
    deserted_ = true;
    if (!lane_->cancel_on_disconnect()) hub_->adopt(lane_->job());
    lane_.reset();
  }

  void news() {
    if (!lane_ || std::exchange(will_read_, true)) return;
    later(reads_every_, &life::read);
  }

  void read() {
    will_read_ = false;
    for (std::string frame; lane_; frame.clear()) {
      const auto next = lane_->take(frame, scratch_);
      if (next == net::ws::lane::next::nothing) return;
      understand(boost::json::parse(frame).as_object());
      if (next == net::ws::lane::next::last_frame) lane_.reset();
    }
  }

  void understand(const boost::json::object& frame) {
    const auto type = frame.at("type").as_string();
    REQUIRE(endings_ == 0);
    if (type == "response.created") {
      REQUIRE_FALSE(std::exchange(created_, true));
    } else if (type == "response.delta") {
      REQUIRE(created_);
      const auto n = frame.contains("n") ? frame.at("n").to_number<std::uint32_t>() : 1;
      REQUIRE(frame.at("seq").to_number<std::uint32_t>() == seq_ + n);
      seq_ += n;
      text_ += frame.at("delta").as_string();
    } else if (type == "response.done") {
      ++endings_;
      reason_ = frame.at("finish_reason").as_string();
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
  net::ws::scratch scratch_;
  std::uint64_t seed_ = 0;
  std::uint32_t max_tokens_ = 0, seq_ = 0;
  std::string stop_, text_, reason_, refused_;
  core::duration reads_every_{};
  bool may_time_out_ = false, cancelled_ = false, deserted_ = false, created_ = false,
       will_read_ = false;
  int endings_ = 0;
};

struct town {
  explicit town(std::uint64_t seed) : here(seed) {
    actors::service_options o;
    o.models.push_back({"sim", "sim:rate=200,prefill=20000,arrive=staggered", false});
    o.owner.device = "sim";
    o.owner.max_batch = 8;
    o.owner.queue = 24;
    o.owner.kv_tokens = 2048;
    o.owner.audit = true;
    service = here.make_service(std::move(o));
    hall = std::make_shared<net::hall>(*service, net::server_options{});
    hub = std::make_shared<net::hub>(hall, here.get_executor());
    tick();
  }

  void tick() {
    hub->tell(net::hub::event::tick);
    if (!closed) here.after(250ms, [this] { tick(); });
  }

  void people(std::size_t n) {
    core::duration when{};
    for (std::size_t i = 0; i < n; ++i) {
      lives.push_back(std::make_shared<life>(here, hub));
      when += std::chrono::microseconds(here.random() % 60000);
      here.after(when, [l = lives.back()] { l->begin(); });
    }
    here.after(when, [this] {
      service->drain(here.get_executor(), [this] { closed = true; });
    });
  }

  world here;
  std::unique_ptr<actors::service> service;
  std::shared_ptr<net::hall> hall;
  std::shared_ptr<net::hub> hub;
  std::vector<std::shared_ptr<life>> lives;
  bool closed = false;
};

}  // namespace

TEST_CASE("lives: ten thousand jobs each end once and leave nothing, whatever their clients do") {
  std::map<std::string, int> endings;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    town t(seed);
    t.people(250);
    REQUIRE(t.here.run([&] { return t.closed; }));
    t.here.run([] { return false; }, 1s);  // what the last ones still have to say
    for (const auto& l : t.lives) {
      REQUIRE(l->over());
      l->judge();
      ++endings[l->ending()];
    }
    const auto stats = t.service->stats();
    REQUIRE(stats.pages.used == 0);
    REQUIRE(stats.jobs.queued + stats.jobs.prefilling + stats.jobs.decoding == 0);
    REQUIRE(t.service->ready().reason == "shutting down");  // and not that the books do not balance
  }
  for (const char* every : {"length", "stop", "timeout", "cancel", "overloaded", "deserted"}) {
    CAPTURE(every);
    CHECK(endings[every] > 300);
  }
}
