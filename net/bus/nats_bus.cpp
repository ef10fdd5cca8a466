#include "net/bus/nats_bus.h"

#include <nats/nats.h>
#include <pthread.h>
#include <sys/random.h>

#include <atomic>
#include <bit>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "core/visible.h"
#include "net/bus/join_plan.h"
#include "net/bus/nats_asks.h"
#include "net/bus/nats_ear.h"
#include "net/bus/nats_options.h"
#include "net/bus/subject.h"

namespace weir::net {
namespace {

using actors::bus;
using link = bus::link;

constexpr std::size_t most_unsent = 64 << 20;
constexpr std::chrono::seconds last_words{1};

// A message on its way to the sending thread: subject, answer_to and bytes, with a zero behind the first two.
class unsent {
 public:
  unsent(std::string_view subject, std::string_view answer_to, std::string_view bytes)
      : answer_at_(subject.size() + 1), bytes_at_(answer_at_ + answer_to.size() + 1) {
    all_.reserve(bytes_at_ + bytes.size());
    all_.append(subject).append(1, '\0').append(answer_to).append(1, '\0').append(bytes);
  }
  const char* subject() const { return all_.c_str(); }
  const char* answer_to() const { return all_[answer_at_] ? all_.c_str() + answer_at_ : nullptr; }
  const char* bytes() const { return all_.c_str() + bytes_at_; }
  int length() const { return static_cast<int>(all_.size() - bytes_at_); }
  std::size_t cost() const { return all_.size() + nats_ear::message_overhead; }

 private:
  std::string all_;
  std::size_t answer_at_, bytes_at_;
};

// What the bus, its subscriptions and cnats' threads share.
//
// cnats holds a lock while it connects and while it writes, for seconds where a server hangs. So only the
// sending thread calls it, and publish() hands over to that thread. Questions and their time limits have a
// thread of their own, which is never held up.
struct shared : std::enable_shared_from_this<shared> {
  shared(join_plan p, nats_hooks h, std::string inbox)
      : plan(std::move(p)), hooks(std::move(h)), asks(deciding, std::move(inbox)) {}

  const join_plan plan;
  const nats_hooks hooks;
  boost::asio::io_context sending{1}, deciding{1};
  std::atomic<link> state{link::down};
  std::atomic<std::size_t> waiting{0};           // bytes of messages that are not sent yet
  std::atomic<std::size_t> most_bytes{1 << 20};  // what NATS' servers allow unless they are told otherwise
  std::atomic<std::uint64_t> last_ask{0};
  std::chrono::steady_clock::time_point give_up;  // written before `closing`
  std::atomic<bool> closing{false};
  std::mutex speaking;  // cnats' threads speak, and do not say when they have left a callback

  // Of the sending thread.
  natsConnection* connection = nullptr;
  natsSubscription* answers = nullptr;
  std::list<std::pair<std::shared_ptr<nats_ear>, natsSubscription*>> ears;
  std::uint64_t lost = 0;  // messages that cnats did not take

  // Of the deciding thread.
  nats_asks asks;
  bus::executor watcher;
  std::function<void(link)> changed;

  // Nothing is said any more once close() has returned.
  void say(std::string_view line) {
    const std::lock_guard hold(speaking);
    if (hooks.trouble && !closing.load()) hooks.trouble(line);
  }
  void close() {
    give_up = std::chrono::steady_clock::now() + last_words;
    const std::lock_guard hold(speaking);
    closing.store(true);
  }
  bool has_room(std::size_t cost) {
    if (waiting.fetch_add(cost) + cost <= most_unsent) return true;
    waiting.fetch_sub(cost);
    return false;
  }
  // Whether it will be sent, unless the link fails. `ask`: its number; 0: it is none.
  bool hand_over(unsent m, std::uint64_t ask);
  void send(const unsent& m, std::uint64_t ask);
  void listen(std::shared_ptr<nats_ear> ear);
  void end(const std::shared_ptr<nats_ear>& ear);
  void become(link now, natsConnection* nc);
  core::result<> connect();
  core::result<> hear_answers();
  void take_answer(natsMsg* m);
  void disconnect();
};

bool shared::hand_over(unsent m, std::uint64_t ask) {
  if (state.load() != link::up || static_cast<std::size_t>(m.length()) > most_bytes.load()) return false;
  if (!has_room(m.cost())) return false;
  boost::asio::post(sending, [this, ask, m = std::move(m)] {
    send(m, ask);
    waiting.fetch_sub(m.cost());
  });
  return true;
}

void shared::send(const unsent& m, std::uint64_t ask) {
  const bool too_late = closing.load() && std::chrono::steady_clock::now() > give_up;
  if (!too_late && connection && state.load() == link::up) {
    // cnats has a function of its own for messages without answers.
    const auto s = m.answer_to() ? natsConnection_PublishRequest(connection, m.subject(), m.answer_to(),
                                                                 m.bytes(), m.length())
                                 : natsConnection_Publish(connection, m.subject(), m.bytes(), m.length());
    if (s == NATS_OK) return;
    const auto n = ++lost;
    if (std::has_single_bit(n)) say(fmt::format("NATS: {} lost until now: {}", n, nats_reason(s)));
  }
  if (ask) boost::asio::post(deciding, [this, ask] { asks.finish(ask, {bus::answer::how::not_sent, {}}); });
}

void shared::listen(std::shared_ptr<nats_ear> ear) {
  if (!connection) return;
  natsSubscription* sub = nullptr;
  auto* box = new nats_ear_box(ear);
  if (const auto s = natsConnection_Subscribe(&sub, connection, ear->subject().c_str(), nats_take, box);
      s != NATS_OK) {
    delete box;
    return say(fmt::format("no subscription for {}: {}", ear->subject(), nats_reason(s)));
  }
  // Where the connection has closed in this moment, cnats does not say when the box is no longer used: it
  // stays.
  natsSubscription_SetOnCompleteCB(sub, nats_complete, box);
  natsSubscription_SetPendingLimits(sub, -1, static_cast<int>(nats_ear::most_waiting));
  ears.emplace_back(ear, sub);
}

void shared::end(const std::shared_ptr<nats_ear>& ear) {
  ears.remove_if([&](const auto& one) {
    if (one.first != ear) return false;
    natsSubscription_Destroy(one.second);
    return true;
  });
}

void shared::become(link now, natsConnection* nc) {
  if (now == link::up)
    if (const auto most = natsConnection_GetMaxPayload(nc); most > 0)
      most_bytes.store(static_cast<std::size_t>(most));
  if (state.exchange(now) == now) return;
  boost::asio::post(deciding, [this, now] {
    if (changed) boost::asio::post(watcher, [what = changed, now] { what(now); });
  });
}

void shared::take_answer(natsMsg* m) {
  const auto number = nats_asks::number_of(natsMsg_GetSubject(m));
  if (!number || *number == 0 || *number > last_ask.load()) return;
  bus::answer a{bus::answer::how::nobody_there, {}};
  if (!natsMsg_IsNoResponders(m)) {
    a.how = bus::answer::how::came;
    a.bytes.assign(natsMsg_GetData(m), static_cast<std::size_t>(natsMsg_GetDataLength(m)));
  }
  boost::asio::post(deciding,
                    [this, n = *number, a = std::move(a)]() mutable { asks.finish(n, std::move(a)); });
}

void shared::disconnect() {
  for (auto& [ear, sub] : ears) {
    ear->close();
    natsSubscription_Destroy(sub);
  }
  natsSubscription_Destroy(std::exchange(answers, nullptr));
  ears.clear();
  natsConnection_Destroy(std::exchange(connection, nullptr));
}

// cnats' closure of the bus: what its threads use until the connection is closed for good.
using shared_box = std::shared_ptr<shared>;

shared& of(void* box) { return **static_cast<shared_box*>(box); }

// Why a connection was closed. Only for a closed connection: cnats gives a pointer to text that its reader
// writes to while the connection is open.
std::string last_words_of(natsConnection* closed) {
  const char* text = nullptr;
  natsConnection_GetLastError(closed, &text);
  return core::one_line(text && *text ? text : "no reason is known");
}

void on_up(natsConnection* nc, void* box) {
  of(box).become(link::up, nc);
  of(box).say("NATS: the link is up");
}
void on_down(natsConnection* nc, void* box) {
  of(box).become(link::down, nc);
  of(box).say("NATS: the link is down; the servers are tried again");
}
void on_closed(natsConnection* nc, void* box) {
  of(box).say(fmt::format("NATS: the link is closed for good: {}", last_words_of(nc)));
  of(box).become(link::closed, nc);
  delete static_cast<shared_box*>(box);  // cnats calls this last
}
void on_trouble(natsConnection*, natsSubscription*, natsStatus s, void* box) {
  of(box).say(fmt::format("NATS: {}", core::one_line(nats_reason(s))));  // of this thread: cnats set it
}
void on_answer(natsConnection*, natsSubscription*, natsMsg* m, void* box) {
  of(box).take_answer(m);
  natsMsg_Destroy(m);
}
void on_answers_complete(void* box) { delete static_cast<shared_box*>(box); }

// Whether trying again can help; else the servers refuse this process.
bool may_come(natsStatus s) {
  return s == NATS_NO_SERVER || s == NATS_TIMEOUT || s == NATS_IO_ERROR ||
         s == NATS_CONNECTION_DISCONNECTED || s == NATS_CONNECTION_CLOSED;
}

natsStatus connect_to(natsConnection** nc, natsOptions* o) {
  auto s = signature_left_out;
  for (int tries = 8; s == signature_left_out && tries > 0; --tries) s = natsConnection_Connect(nc, o);
  return s;
}

core::result<> shared::connect() {
  auto box = std::make_unique<shared_box>(shared_from_this());
  auto options = nats_options_of(plan, hooks.name, {box.get(), on_up, on_down, on_closed, on_trouble});
  if (!options) return options.error();
  state.store(link::up);  // from here on cnats tells of changes
  auto s = connect_to(&connection, options->get());
  if (s == NATS_OK) {
    become(link::up, connection);
  } else {
    state.store(link::down);
    const auto why = nats_reason(s);
    if (!may_come(s))
      return core::make_error(core::errc::unavailable, "--join {}: {}", plan.urls.front().text(), why);
    say(fmt::format("--join {}: {}; the servers are tried again", plan.urls.front().text(), why));
    natsOptions_SetRetryOnFailedConnect(options->get(), true, on_up, box.get());
    s = natsConnection_Connect(&connection, options->get());
    if (s != NATS_OK && s != NATS_NOT_YET_CONNECTED)
      return core::make_error(core::errc::unavailable, "--join {}: {}", plan.urls.front().text(),
                              nats_reason(s));
    if (s == NATS_OK) become(link::up, connection);
  }
  (void)box.release();  // on_closed deletes it
  return hear_answers();
}

core::result<> shared::hear_answers() {
  auto box = std::make_unique<shared_box>(shared_from_this());
  const auto subject = asks.inbox() + ".*";
  if (const auto s = natsConnection_Subscribe(&answers, connection, subject.c_str(), on_answer, box.get());
      s != NATS_OK)
    return core::make_error(core::errc::unavailable, "--join: no subscription for answers: {}",
                            nats_reason(s));
  natsSubscription_SetOnCompleteCB(answers, on_answers_complete, box.release());
  natsSubscription_SetPendingLimits(answers, -1, static_cast<int>(nats_ear::most_waiting));
  return {};
}

std::string drawn_inbox() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return {};
  std::string out = "_INBOX.";
  for (const unsigned char b : bytes) out += fmt::format("{:02x}", b);
  return out;
}

class nats_bus final : public bus {
 public:
  explicit nats_bus(std::shared_ptr<shared> s) : s_(std::move(s)) {
    sender_ = std::thread([s = s_] { s->sending.run(); });
    decider_ = std::thread([s = s_] { s->deciding.run(); });
    pthread_setname_np(sender_.native_handle(), "weir-bus-send");
    pthread_setname_np(decider_.native_handle(), "weir-bus");
  }

  ~nats_bus() override {
    s_->close();
    boost::asio::post(s_->sending, [s = s_] { s->disconnect(); });
    more_to_send_.reset();
    sender_.join();
    boost::asio::post(s_->deciding, [s = s_] {
      s->asks.clear();
      s->changed = nullptr;
      s->deciding.stop();
    });
    decider_.join();
  }

  bool publish(std::string_view subject, std::string_view bytes) override {
    return publish(subject, {}, bytes);
  }
  bool publish(std::string_view subject, std::string_view answer_to, std::string_view bytes) override {
    if (!is_subject(subject) || !(answer_to.empty() || is_subject(answer_to))) return false;
    if (bytes.size() > s_->most_bytes.load()) return false;
    return s_->hand_over({subject, answer_to, bytes}, 0);
  }

  core::result<std::unique_ptr<subscription>> subscribe(std::string subject, executor ex,
                                                        handler what) override {
    if (!is_subject_pattern(subject))
      return core::bad_param("subject", "'{}' is no subject to subscribe to", core::one_line(subject));
    auto ear = std::make_shared<nats_ear>(std::move(subject), std::move(ex), std::move(what));
    boost::asio::post(s_->sending, [s = s_, ear] { s->listen(ear); });
    return std::unique_ptr<subscription>(std::make_unique<heard>(s_, std::move(ear)));
  }

  void ask(std::string_view subject, std::string_view bytes, core::duration patience, executor ex,
           std::function<void(answer)> done) override {
    if (!is_subject(subject) || bytes.size() > s_->most_bytes.load()) return refuse(ex, std::move(done));
    const auto number = s_->last_ask.fetch_add(1) + 1;
    unsent m(subject, s_->asks.answered_on(number), bytes);
    // The question is known before it can be answered: this thread posts both, in this order.
    boost::asio::post(s_->deciding, [s = s_, number, patience, ex, done = std::move(done)]() mutable {
      s->asks.add(number, patience, std::move(ex), std::move(done));
    });
    if (!s_->hand_over(std::move(m), number))
      boost::asio::post(s_->deciding, [s = s_, number] {
        s->asks.finish(number, {answer::how::not_sent, {}});
      });
  }

  link state() const noexcept override { return s_->state.load(); }
  void watch(executor ex, std::function<void(link)> changed) override {
    boost::asio::post(s_->deciding, [s = s_, ex = std::move(ex), changed = std::move(changed)]() mutable {
      s->watcher = std::move(ex);
      s->changed = std::move(changed);
    });
  }
  std::size_t most_bytes() const noexcept override { return s_->most_bytes.load(); }

 private:
  class heard final : public subscription {
   public:
    heard(std::shared_ptr<shared> s, std::shared_ptr<nats_ear> ear)
        : s_(std::move(s)), ear_(std::move(ear)) {}
    ~heard() override {
      ear_->close();
      boost::asio::post(s_->sending, [s = s_.get(), ear = ear_] { s->end(ear); });
    }

   private:
    const std::shared_ptr<shared> s_;
    const std::shared_ptr<nats_ear> ear_;
  };

  static void refuse(const executor& ex, std::function<void(answer)> done) {
    boost::asio::post(ex, [done = std::move(done)] { done({answer::how::not_sent, {}}); });
  }

  const std::shared_ptr<shared> s_;
  using guard = boost::asio::executor_work_guard<boost::asio::io_context::executor_type>;
  guard more_to_send_{s_->sending.get_executor()}, more_to_decide_{s_->deciding.get_executor()};
  std::thread sender_, decider_;
};

}  // namespace

bool has_nats() noexcept { return true; }

core::result<std::unique_ptr<actors::bus>> join_nats(const core::join_settings& settings, nats_hooks hooks) {
  auto plan = join_plan_of(settings);
  if (!plan) return plan.error();
  auto inbox = drawn_inbox();
  if (inbox.empty()) return core::make_error(core::errc::internal, "the system gives no random bytes");
  auto s = std::make_shared<shared>(std::move(*plan), std::move(hooks), std::move(inbox));
  if (const auto ok = s->connect(); !ok) {
    s->close();
    s->disconnect();
    return ok.error();
  }
  return std::unique_ptr<actors::bus>(std::make_unique<nats_bus>(std::move(s)));
}

}  // namespace weir::net
