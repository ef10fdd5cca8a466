// loop_bus.h — the bus of a fleet in virtual time: a network of endpoints, one a process, with delays,
// losses, messages that come twice, and cuts. What happens is a function of the world's seed.
//
// Messages of one publisher under the subjects of one subscription come in order; those of different
// publishers overtake each other. An endpoint may be
//   cut:     nothing comes or goes, and it knows: its link is down
//   stalled: what comes and goes waits until it is not stalled any more, as with a process that is stopped
//   killed:  it is not there any more, and whoever asks it learns so
//
// Thread safety: none; everything on the thread that runs the world.
#pragma once

#include <algorithm>
#include <boost/asio/post.hpp>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/bus.h"
#include "tests/support/world.h"

namespace weir::tests {

struct net_manners {
  core::duration least = std::chrono::microseconds(50),
                 most = std::chrono::microseconds(500);  // of a message
  double loss = 0, twice = 0;                            // of all messages
};

class loop_net : public std::enable_shared_from_this<loop_net> {
 public:
  explicit loop_net(world& w, net_manners how = {}) : how(how), world_(w) {}

  class endpoint;
  std::unique_ptr<endpoint> join();

  net_manners how;
  std::uint64_t published = 0, lost = 0;

 private:
  friend class endpoint;
  struct ear {
    endpoint* owner;
    std::string subject;
    actors::bus::executor ex;
    actors::bus::handler what;
    bool over = false;
    std::deque<actors::bus::message> due;              // whose time has come
    std::map<const endpoint*, core::time_point> last;  // when the last one of a publisher comes
  };
  using ear_ptr = std::shared_ptr<ear>;

  static bool fits(std::string_view pattern, std::string_view subject) {
    while (!pattern.empty() && !subject.empty()) {
      const auto p = pattern.substr(0, pattern.find('.')), s = subject.substr(0, subject.find('.'));
      if (p == ">") return true;
      if (p != "*" && p != s) return false;
      pattern.remove_prefix(std::min(pattern.size(), p.size() + 1));
      subject.remove_prefix(std::min(subject.size(), s.size() + 1));
    }
    return pattern.empty() && subject.empty();
  }
  double chance() { return std::uniform_real_distribution<double>(0, 1)(world_.random); }
  core::duration delay() {
    return core::duration(
        std::uniform_int_distribution<std::int64_t>(how.least.count(), how.most.count())(world_.random));
  }
  void carry(const endpoint& from, const actors::bus::message& m);
  void carry_to(const endpoint& from, const ear_ptr& to, const actors::bus::message& m);
  void arrive(const ear_ptr& to, actors::bus::message m);

  world& world_;
  std::vector<ear_ptr> ears_;
  std::uint64_t inboxes_ = 0;
};

class loop_net::endpoint final : public actors::bus {
 public:
  explicit endpoint(std::shared_ptr<loop_net> net) : net_(std::move(net)) {}
  ~endpoint() override { kill(); }

  bool publish(std::string_view subject, std::string_view bytes) override {
    return publish(subject, {}, bytes);
  }
  bool publish(std::string_view subject, std::string_view answer_to, std::string_view bytes) override {
    if (killed_ || cut_ || bytes.size() > most_bytes()) return false;
    ++net_->published;
    message m{std::string(subject), std::string(answer_to), std::string(bytes)};
    if (stalled_)
      going_.push_back(std::move(m));
    else
      net_->carry(*this, m);
    return true;
  }

  core::result<std::unique_ptr<subscription>> subscribe(std::string subject, executor ex,
                                                        handler what) override {
    auto e =
        std::make_shared<ear>(ear{this, std::move(subject), std::move(ex), std::move(what), false, {}, {}});
    net_->ears_.push_back(e);
    return std::unique_ptr<subscription>(std::make_unique<hold>(net_, std::move(e)));
  }

  void ask(std::string_view subject, std::string_view bytes, core::duration patience, executor ex,
           std::function<void(answer)> done) override {
    struct question {
      std::function<void(answer)> done;
      std::unique_ptr<subscription> inbox;
    };
    auto q = std::make_shared<question>();
    q->done = std::move(done);
    const auto settle = [ex](const std::shared_ptr<question>& of, enum answer::how how, std::string bytes) {
      if (!of->done) return;
      of->inbox.reset();
      boost::asio::post(ex,
                        [done = std::exchange(of->done, nullptr), how, bytes = std::move(bytes)]() mutable {
                          answer a;
                          a.how = how;
                          a.bytes = std::move(bytes);
                          done(std::move(a));
                        });
    };
    const bool somebody = std::ranges::any_of(net_->ears_, [&](const auto& e) {
      return !e->over && !e->owner->killed_ && fits(e->subject, subject);
    });
    if (cut_ || killed_ || bytes.size() > most_bytes()) return settle(q, answer::how::not_sent, {});
    if (!somebody) {
      net_->world_.after(net_->delay(), [settle, q] { settle(q, answer::how::nobody_there, {}); });
      return;
    }
    const std::string inbox = "_INBOX." + std::to_string(++net_->inboxes_);
    q->inbox = std::move(*subscribe(inbox, ex, [settle, waits = std::weak_ptr(q)](message m) {
      if (const auto of = waits.lock()) settle(of, answer::how::came, std::move(m.bytes));
    }));
    net_->world_.after(patience, [settle, q] { settle(q, answer::how::too_late, {}); });
    publish(subject, inbox, bytes);
  }

  link state() const noexcept override { return cut_ ? link::down : link::up; }
  void watch(executor ex, std::function<void(link)> changed) override {
    watcher_ = [ex, changed = std::move(changed)](link l) { boost::asio::post(ex, [=] { changed(l); }); };
  }
  std::size_t most_bytes() const noexcept override { return longest; }

  void cut(bool now) {
    if (cut_ == now) return;
    cut_ = now;
    if (watcher_) watcher_(state());
  }
  void stall(bool now) {
    stalled_ = now;
    if (now) return;
    for (auto& m : std::exchange(going_, {})) net_->carry(*this, m);
    for (auto& [e, m] : std::exchange(coming_, {})) net_->arrive(e, std::move(m));
  }
  void kill() {
    if (killed_) return;
    killed_ = true;
    for (const auto& e : net_->ears_)
      if (e->owner == this) e->over = true;
    std::erase_if(net_->ears_, [](const auto& e) { return e->over; });
  }
  bool killed() const { return killed_; }

  std::size_t longest = std::size_t{1} << 20;

 private:
  friend class loop_net;
  struct hold final : subscription {
    hold(std::weak_ptr<loop_net> n, ear_ptr e) : net(std::move(n)), mine(std::move(e)) {}
    ~hold() override {
      mine->over = true;
      if (const auto n = net.lock()) std::erase(n->ears_, mine);
    }
    std::weak_ptr<loop_net> net;
    ear_ptr mine;
  };

  const std::shared_ptr<loop_net> net_;
  bool cut_ = false, stalled_ = false, killed_ = false;
  std::function<void(link)> watcher_;
  std::vector<message> going_;
  std::vector<std::pair<ear_ptr, message>> coming_;
};

inline std::unique_ptr<loop_net::endpoint> loop_net::join() {
  return std::make_unique<endpoint>(shared_from_this());
}

inline void loop_net::carry(const endpoint& from, const actors::bus::message& m) {
  for (const auto& e : ears_)
    if (!e->over && fits(e->subject, m.subject)) carry_to(from, e, m);
}

inline void loop_net::carry_to(const endpoint& from, const ear_ptr& to, const actors::bus::message& m) {
  if (chance() < how.loss) return void(++lost);
  const int times = chance() < how.twice ? 2 : 1;
  for (int i = 0; i < times; ++i) {
    auto& last = to->last[&from];
    last = std::max(last, world_.now() + delay());
    world_.after(last - world_.now(), [net = weak_from_this(), to, m] {
      if (const auto alive = net.lock()) alive->arrive(to, m);
    });
  }
}

inline void loop_net::arrive(const ear_ptr& to, actors::bus::message m) {
  if (to->over) return;
  if (to->owner->cut_) return void(++lost);
  if (to->owner->stalled_) return to->owner->coming_.emplace_back(to, std::move(m)), void();
  to->due.push_back(std::move(m));
  boost::asio::post(to->ex, [to] {
    if (to->over || to->due.empty()) return;
    auto m = std::move(to->due.front());
    to->due.pop_front();
    to->what(std::move(m));
  });
}

}  // namespace weir::tests
