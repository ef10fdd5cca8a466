// world.h — a service in virtual time on one thread. The order of handlers and the moments at which timers
// expire are functions of the seed. Hours of virtual time take seconds.
//
// Thread safety: none; everything on the thread that calls run().
#pragma once

#include <map>
#include <vector>

#include "actors/service.h"
#include "tests/support/seeded_executor.h"

namespace weir::tests {

class world final : public actors::timekeeper {
 public:
  explicit world(std::uint64_t seed) : handlers_(seed), random(seed ^ 0x9E3779B97F4A7C15) {}
  // Functions that were not called yet may hold executors of handlers_, and are destroyed before it. The
  // entries of the timetable stay, since timers erase their own.
  ~world() override {
    std::vector<std::function<void()>> left;
    for (auto& [at, f] : due_) left.push_back(std::move(f));
  }

  actors::executor get_executor() { return handlers_.get_executor(); }
  core::time_point now() const noexcept override { return now_; }
  std::unique_ptr<timer> make_timer(boost::asio::any_io_executor, std::function<void()> ring) const override {
    return std::make_unique<virtual_timer>(*this, std::move(ring));
  }

  std::shared_ptr<const core::clock> lasting() const override {
    return {std::shared_ptr<const core::clock>(), this};
  }

  // Calls f after `delay`.
  void after(core::duration delay, std::function<void()> f) { due_.emplace(now_ + delay, std::move(f)); }

  // Timers that come to be due meanwhile ring late, before any other handler.
  void spend(core::duration d) const override {
    now_ += d;
    spent_ = true;
  }

  // Runs whatever can run; where nothing can, time moves on to the next timer. Returns true when `done`
  // holds, and false if nothing would ever happen again, or nothing before `limit`.
  bool run(const std::function<bool()>& done, core::duration limit = std::chrono::hours(1000)) {
    const auto end = now_ + limit;
    while (!done()) {
      const bool late = spent_ && !due_.empty() && due_.begin()->first <= now_;
      if (spent_ && now_ > end) return false;
      if (!late && handlers_.run_one()) continue;
      if (due_.empty() || due_.begin()->first > end) return false;
      auto first = due_.extract(due_.begin());
      now_ = std::max(now_, first.key());
      first.mapped()();
    }
    return true;
  }

  // What makes the actors of a service live here.
  actors::simulation simulated() {
    return {get_executor(), [this] { return core::job_id{random(), random()}; }};
  }

  // A service whose actors all live here.
  std::unique_ptr<actors::service> make_service(actors::service_options o) {
    o.simulated = simulated();
    auto s = std::make_unique<actors::service>(std::move(o), *this);
    std::optional<core::result<>> loaded;
    s->load({}, get_executor(), [&](core::result<> r) { loaded = std::move(r); });
    REQUIRE(run([&] { return loaded.has_value(); }));
    REQUIRE(loaded->has_value());
    return s;
  }

 private:
  using timetable = std::multimap<core::time_point, std::function<void()>>;

  class virtual_timer final : public timer {
   public:
    virtual_timer(const world& w, std::function<void()> ring) : due_(w.due_), ring_(std::move(ring)) {}
    ~virtual_timer() override { unset(); }
    void set(core::time_point at) override {
      unset();
      at_ = due_.emplace(at, [this] {
        at_.reset();
        ring_();
      });
    }

   private:
    void unset() {
      if (at_) due_.erase(*at_);
      at_.reset();
    }
    timetable& due_;
    std::function<void()> ring_;
    std::optional<timetable::iterator> at_;
  };

  mutable core::time_point now_{std::chrono::seconds(1)};
  mutable bool spent_ = false;  // time was spent: it moves while handlers wait
  mutable timetable due_;
  seeded_context handlers_;  // destroyed before due_: actors that still run hold timers

 public:
  std::mt19937_64 random;  // for tests and clients: not the one that orders handlers
};

}  // namespace weir::tests
