#include "actors/registry.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "core/insist.h"

namespace weir::actors {
namespace {

constexpr std::size_t kept_lines = 1000;

class registry {
 public:
  registry(const core::clock& time, std::function<void(std::vector<job_view>&)> look)
      : time_(time), look_(std::move(look)) {}

  void on(job_born& m) { live_.emplace(m.id, living{m.answer, m.owner, m.created, std::move(m.cancel), {}}); }

  void on(job_ended& m) {
    const auto it = live_.find(m.last.id);
    if (it == live_.end()) return;
    const living job = std::move(it->second);
    live_.erase(it);
    m.last.age_s = age(job);
    for (const auto& tell : job.waiting) core::insist([&] { tell(m.last); });
    if (live_.empty()) tell_empty();
    if (!m.was_accepted) return;
    ended_.push_back({job.owner, job.created, m.last});
    if (ended_.size() > kept_lines) ended_.pop_front();
  }

  void on(list_jobs& m) {
    std::vector<job_view> all;
    all.reserve(live_.size() + ended_.size());
    for (const auto& [id, j] : live_)
      if (knows(m.who, j.owner)) all.push_back(view(id, j));
    std::ranges::sort(all, {}, &job_view::age_s);
    look_(all);
    std::for_each(ended_.rbegin(), ended_.rend(), [&](const line& e) {
      if (knows(m.who, e.owner)) all.push_back(view(e));
    });
    core::insist([&] { m.done(all); });
  }

  void on(find_job& m) {
    if (m.cancel && cancel(m)) return;
    auto found = look_up(m.who, m.id);
    core::insist([&] { m.done(found); });
  }

  void on(cancel_all&) {
    for (auto& [id, j] : live_) j.cancel();
  }

  void on(when_empty& m) {
    waiting_empty_.push_back(std::move(m.done));
    if (live_.empty()) tell_empty();
  }

 private:
  struct living {
    core::job_id answer;
    principal owner;
    core::time_point created;
    std::function<void()> cancel;
    std::vector<std::function<void(std::optional<job_view>)>> waiting;
  };
  struct line {
    principal owner;
    core::time_point created;
    job_view last;
  };

  // A caller that waits until all jobs of an answer have ended.
  struct whole_answer {
    core::job_id id;
    std::size_t running = 0;
    std::optional<job_view> last;  // final state of the job `id` or, where it is no longer kept, of another
    std::function<void(std::optional<job_view>)> done;

    // One of the jobs has ended. It can be called again after it has thrown.
    void ended(const std::optional<job_view>& v) {
      if (!last || v->id == id) last = v;
      if (running == 1) done(last);
      --running;
    }
  };

  // Cancels the live jobs of an answer, or the one job of this id. Returns whether there are any.
  bool cancel(find_job& m) {
    std::vector<living*> all;
    for (auto& [id, j] : live_)
      if ((id == m.id || j.answer == m.id) && knows(m.who, j.owner)) all.push_back(&j);
    if (all.empty()) return false;
    for (living* j : all) j->cancel();  // they end by messages, so none has ended here
    const auto waits = std::make_shared<whole_answer>();
    waits->id = m.id;
    waits->running = all.size();
    if (!live_.contains(m.id)) waits->last = look_up(m.who, m.id);
    waits->done = std::move(m.done);
    for (living* j : all)
      j->waiting.push_back([waits](const std::optional<job_view>& v) { waits->ended(v); });
    return true;
  }

  std::optional<job_view> look_up(const asker& who, const core::job_id& id) {
    if (const auto it = live_.find(id); it != live_.end() && knows(who, it->second.owner)) {
      std::vector<job_view> one{view(id, it->second)};
      look_(one);
      return one.front();
    }
    for (const auto& e : ended_)
      if (e.last.id == id && knows(who, e.owner)) return view(e);
    return std::nullopt;
  }

  static bool knows(const asker& who, const principal& owner) { return !who || who->has(owner); }
  double age(const living& j) const { return std::chrono::duration<double>(time_.now() - j.created).count(); }
  job_view view(const core::job_id& id, const living& j) const {
    job_view v;
    v.id = id;
    v.state = "queued";
    v.age_s = age(j);
    return v;
  }
  job_view view(const line& e) const {
    job_view v = e.last;
    v.age_s = std::chrono::duration<double>(time_.now() - e.created).count();
    return v;
  }
  void tell_empty() {
    for (const auto& done : std::exchange(waiting_empty_, {})) core::insist([&] { done(); });
  }

  const core::clock& time_;
  std::function<void(std::vector<job_view>&)> look_;
  std::unordered_map<core::job_id, living, core::job_id_hash> live_;
  std::deque<line> ended_;
  std::vector<std::function<void()>> waiting_empty_;
};

}  // namespace

ref<registry_msg> spawn_registry(executor where, const core::clock& time,
                                 std::shared_ptr<core::incidents> seen,
                                 std::function<void(std::vector<job_view>&)> look) {
  options o;
  o.name = "registry";
  // So large that job_born and job_ended are never refused. Admission limits the number of live jobs.
  o.mailbox = std::size_t{1} << 24;
  auto mind = std::make_shared<registry>(time, std::move(look));
  return spawn<registry_msg>(
      where, o, [mind, seen](context<registry_msg> self) -> boost::asio::awaitable<void> {
        while (auto m = co_await self.async_receive()) {
          core::contained(*seen, "the registry",
                          [&] { std::visit([&](auto& what) { mind->on(what); }, *m); });
        }
      });
}

}  // namespace weir::actors
