// prompt_bus.h — the bus of a fleet inside one process, in real time and on real threads: a message is handed
// on at once. Nothing is lost, and order is that of the calls.
//
// Thread safety: any thread.
#pragma once

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/bus.h"

namespace weir::tests {

class prompt_bus final : public actors::bus {
 public:
  bool publish(std::string_view subject, std::string_view bytes) override {
    return publish(subject, {}, bytes);
  }
  bool publish(std::string_view subject, std::string_view answer_to, std::string_view bytes) override {
    return hand_on({std::string(subject), std::string(answer_to), std::string(bytes)}) || true;
  }

  core::result<std::unique_ptr<subscription>> subscribe(std::string subject, executor ex,
                                                        handler what) override {
    auto e = std::make_shared<ear>(ear{std::move(subject), std::move(ex), std::move(what)});
    const std::lock_guard held(ears_->lock);
    ears_->all.push_back(e);
    return std::unique_ptr<subscription>(std::make_unique<hold>(ears_, std::move(e)));
  }

  void ask(std::string_view subject, std::string_view bytes, core::duration patience, executor ex,
           std::function<void(answer)> done) override {
    struct question {
      explicit question(const executor& ex) : timer(ex) {}
      std::mutex lock;
      std::function<void(answer)> done;
      std::unique_ptr<subscription> inbox;
      boost::asio::steady_timer timer;
    };
    auto q = std::make_shared<question>(ex);
    q->done = std::move(done);
    const auto settle = [q, ex](enum answer::how how, std::string bytes) {
      answer a;
      a.how = how;
      a.bytes = std::move(bytes);
      const std::lock_guard held(q->lock);
      if (!q->done) return;
      boost::asio::post(ex, [q, done = std::exchange(q->done, nullptr), a = std::move(a)]() mutable {
        q->timer.cancel();
        q->inbox.reset();
        done(std::move(a));
      });
    };
    const std::string inbox = "_INBOX." + std::to_string(++inboxes_);
    q->inbox = std::move(
        *subscribe(inbox, ex, [settle](message m) { settle(answer::how::came, std::move(m.bytes)); }));
    boost::asio::post(ex, [q, settle, patience] {
      q->timer.expires_after(patience);
      q->timer.async_wait([settle](boost::system::error_code stopped) {
        if (!stopped) settle(answer::how::too_late, {});
      });
    });
    if (!hand_on({std::string(subject), inbox, std::string(bytes)})) settle(answer::how::nobody_there, {});
  }

  link state() const noexcept override { return link::up; }
  void watch(executor, std::function<void(link)>) override {}
  std::size_t most_bytes() const noexcept override { return std::size_t{1} << 20; }

 private:
  struct ear {
    std::string subject;
    executor ex;
    handler what;
  };
  struct list {
    std::mutex lock;
    std::vector<std::shared_ptr<ear>> all;
  };
  struct hold final : subscription {
    hold(std::shared_ptr<list> of, std::shared_ptr<ear> e) : ears(std::move(of)), mine(std::move(e)) {}
    ~hold() override {
      const std::lock_guard held(ears->lock);
      std::erase(ears->all, mine);
    }
    std::shared_ptr<list> ears;
    std::shared_ptr<ear> mine;
  };

  // A subject with `*` as its last word fits any last word.
  static bool fits(std::string_view pattern, std::string_view subject) {
    if (!pattern.ends_with('*')) return pattern == subject;
    pattern.remove_suffix(1);
    return subject.starts_with(pattern);
  }
  // False: nobody listens.
  bool hand_on(message m) {
    bool somebody = false;
    const std::lock_guard held(ears_->lock);
    for (const auto& e : ears_->all) {
      if (!fits(e->subject, m.subject)) continue;
      somebody = true;
      boost::asio::post(e->ex, [e, m]() mutable { e->what(std::move(m)); });
    }
    return somebody;
  }

  const std::shared_ptr<list> ears_ = std::make_shared<list>();
  std::atomic<std::uint64_t> inboxes_{0};
};

}  // namespace weir::tests
