// hub.h — what the connections of one server share: the hall (all shards) and the hub (one shard).
//
// The hall counts, and knows when the server drains or stops. A hub keeps the list of its shard's
// connections, tells them four times a second that time has passed, and looks after jobs whose socket is gone
// until their grace is over.
//
// Thread safety: the hall from any thread; a hub on its shard alone.
//
// Invariants:
//   1. Whoever enters the hall leaves it: it is empty once no coroutine of the server runs any more.
//   2. A job in a hub's care is cancelled at its deadline, or let go when it has ended.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "actors/service.h"
#include "core/delays.h"
#include "net/address_book.h"
#include "net/api_keys.h"
#include "net/limits.h"

namespace weir::net {

// What the clients of a server have not taken yet, as its shards last counted it.
struct client_lag {
  // sockets in the middle of a write that has taken over a quarter of a second
  std::atomic<std::int64_t> late{0};
  std::atomic<std::int64_t> bytes{0};  // of text and frames that wait for their sockets
};

struct hall {
  hall(actors::service& s, server_options o)
      : service(s),
        seen(s.seen()),
        options(std::move(o)),
        keys(options.api_keys),
        callers(std::make_shared<address_book>(options.limits.sockets_per_address, options.limits.trusted)) {}

  actors::service& service;
  core::incidents& seen;  // exceptions that ended a connection
  const server_options options;
  const key_ring keys;
  const std::shared_ptr<address_book> callers;
  std::string listen_host;  // as bound; constant once the server has started
  bool loopback = false;
  std::atomic<bool> draining{false}, stopping{false};
  std::atomic<std::int64_t> sessions{0};  // WebSockets
  core::delays sampled_to_sent;           // of each frame's last token, when the system has taken the frame
  client_lag lag;

  void enter();
  void leave();
  std::int64_t inside() const;
  // True if the hall emptied in time.
  bool wait_empty(std::chrono::milliseconds most);

  void count_close(std::uint16_t code);
  std::map<std::uint16_t, std::uint64_t> closed() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable emptied_;
  std::int64_t inside_ = 0;
  std::map<std::uint16_t, std::uint64_t> closed_;
};

class hub : public std::enable_shared_from_this<hub> {
 public:
  enum class event { tick, drain, close };
  // Told on the shard. It must not come or go while it is told.
  using listener = std::function<void(event)>;
  hub(std::shared_ptr<hall> h, actors::executor ex) : hall_(std::move(h)), executor_(std::move(ex)) {}

  hall& all() const noexcept { return *hall_; }
  const std::shared_ptr<hall>& all_ptr() const noexcept { return hall_; }
  const actors::executor& executor() const noexcept { return executor_; }
  const server_limits& limits() const noexcept { return hall_->options.limits; }

  void tell(event e);

  // What one client has not taken, while it is told that time has passed.
  void count_lag(std::chrono::nanoseconds writing, std::size_t waiting_bytes) noexcept {
    if (writing > late_write) ++late_;
    lag_bytes_ += static_cast<std::int64_t>(waiting_bytes);
  }

  // Listens for as long as it lives.
  class seat {
   public:
    seat(hub& h, listener l) : hub_(h), at_(h.listeners_.insert(h.listeners_.end(), std::move(l))) {}
    seat(const seat&) = delete;
    seat& operator=(const seat&) = delete;
    ~seat() { hub_.listeners_.erase(at_); }

   private:
    hub& hub_;
    std::list<listener>::iterator at_;
  };

  // Keeps a job that has lost its reader until the grace is over.
  void adopt(std::shared_ptr<actors::job_stream> job);
  void let_go_of_all();

 private:
  struct orphan {
    std::shared_ptr<actors::job_stream> job;
    core::time_point until;
  };
  void look_after_orphans();
  void publish_lag();

  static constexpr std::chrono::milliseconds late_write{250};
  std::shared_ptr<hall> hall_;
  actors::executor executor_;
  std::list<listener> listeners_;
  std::list<orphan> orphans_;
  std::int64_t late_ = 0, lag_bytes_ = 0;                      // of this round
  std::int64_t published_late_ = 0, published_lag_bytes_ = 0;  // this shard's part of the hall's
};

// An entry in the hall, for as long as it lives.
class guest {
 public:
  explicit guest(std::shared_ptr<hall> h) : hall_(std::move(h)) { hall_->enter(); }
  guest(guest&& other) noexcept = default;
  guest& operator=(guest&&) = delete;
  ~guest() {
    if (hall_) hall_->leave();
  }

 private:
  std::shared_ptr<hall> hall_;
};

}  // namespace weir::net
