// hub.h — what the connections of one server share: server_state (all shards) and hub (one shard).
//
// server_state holds the options and the counts, and says whether the server drains or stops. A hub has the
// list of its shard's connections, tells them four times a second that time has passed, and at once that keys
// were removed, and keeps the jobs that outlive their clients (net/kept_jobs.h).
//
// Thread safety: server_state from any thread; a hub on its shard only.
//
// Invariant:
//   1. server_state::coroutines() is 0 once no coroutine of the server runs any more.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/service.h"
#include "core/delays.h"
#include "net/access/address_book.h"
#include "net/access/bearer.h"
#include "net/access/job_places.h"
#include "net/kept_jobs.h"
#include "net/limits.h"
#include "net/metrics/shard_counts.h"
#include "net/model_watch.h"
#include "net/reserve.h"

namespace weir::net {

// How far the clients of a server are behind, as its shards counted at their latest tick.
struct client_lag {
  std::atomic<std::int64_t> late{0};   // sockets whose current write has taken over a quarter of a second
  std::atomic<std::int64_t> bytes{0};  // bytes of text and frames that wait for their sockets
};

// An address that the server listens on. Constant once the server has started.
struct entrance {
  bool metrics_only = false;  // it serves /metrics and health alone, and asks for no key
  std::string host;           // as bound
  bool loopback = false;      // host is a loopback address
  // For connections that find no memory or descriptor.
  const std::shared_ptr<net::reserve> reserve = std::make_shared<net::reserve>();
};

class hub;
class response_desk;

struct server_state {
  server_state(actors::service& s, server_options o)
      : service(s),
        seen(s.seen()),
        options(std::move(o)),
        bearers(options.api_keys, options.token_secret),
        callers(std::make_shared<address_book>(options.limits.sockets_per_address, options.limits.trusted)) {}

  actors::service& service;
  core::incidents& seen;  // exceptions that ended a connection
  const server_options options;
  known_bearers bearers;
  job_places token_jobs;  // of browser tokens
  const std::shared_ptr<address_book> callers;
  entrance main, metrics{.metrics_only = true};
  std::atomic<bool> draining{false}, stopping{false};
  std::atomic<bool> keys_stale{false};           // see server::set_keys_stale()
  std::atomic<std::int64_t> sessions{0};         // WebSockets
  std::atomic<std::size_t> model_followers{0};   // of GET /models/sse
  // The responses that are kept; set before the server starts. Their store is the first shard's.
  std::shared_ptr<response_desk> responses;
  std::vector<std::weak_ptr<hub>> hubs;          // of all shards; constant once the server has started
  std::atomic<std::uint64_t> retained_bytes{0};  // of ended jobs that can still be resumed
  client_lag lag;

  void coroutine_begun();
  void coroutine_ended();
  std::int64_t coroutines() const;
  // Returns whether all coroutines ended within `most`.
  bool wait_all_ended(std::chrono::milliseconds most);

  // The counts of one more shard. REQUIRES: the server has not started.
  shard_counts& add_shard() { return shards_.emplace_back(); }
  // Sums over all shards; see shard_counts.
  std::map<std::uint16_t, std::uint64_t> closed() const;
  std::map<std::string_view, std::uint64_t> rejected() const;
  std::uint64_t resumed() const noexcept;
  void add_sampled_to_sent(core::delays& to) const noexcept;

 private:
  mutable std::mutex mutex_;
  std::condition_variable all_ended_;
  std::int64_t coroutines_ = 0;
  std::deque<shard_counts> shards_;
};

class hub : public std::enable_shared_from_this<hub> {
 public:
  enum class event { tick, drain, close, keys_changed };
  // Called on the shard. It must not begin or end a subscription.
  using listener = std::function<void(event)>;
  hub(std::shared_ptr<server_state> s, actors::executor ex)
      : server_(std::move(s)),
        executor_(std::move(ex)),
        counts_(server_->add_shard()),
        jobs_(std::make_shared<kept_jobs>(*server_)),
        models_(std::make_shared<model_watch>(*server_, executor_)) {}

  server_state& server() const noexcept { return *server_; }
  const std::shared_ptr<server_state>& server_ptr() const noexcept { return server_; }
  const actors::executor& executor() const noexcept { return executor_; }
  const server_limits& limits() const noexcept { return server_->options.limits; }

  kept_jobs& jobs() const noexcept { return *jobs_; }
  model_watch& models() const noexcept { return *models_; }
  shard_counts& counts() const noexcept { return counts_; }
  // A buffer for the ids of one frame at a time. It is kept, so that it need not grow again.
  std::vector<core::token_id>& ids() noexcept { return ids_; }

  void tell(event e);

  // Adds what one client has not taken. Called by its connection at every tick.
  void count_lag(std::chrono::nanoseconds writing, std::size_t waiting_bytes) noexcept {
    if (writing > late_write) ++late_;
    lag_bytes_ += static_cast<std::int64_t>(waiting_bytes);
  }

  // Calls the listener for every event until this object is destroyed.
  class subscription {
   public:
    subscription(hub& h, listener l) : hub_(h), at_(h.listeners_.insert(h.listeners_.end(), std::move(l))) {}
    subscription(const subscription&) = delete;
    subscription& operator=(const subscription&) = delete;
    ~subscription() { hub_.listeners_.erase(at_); }

   private:
    hub& hub_;
    std::list<listener>::iterator at_;
  };

 private:
  void publish_lag();

  static constexpr std::chrono::milliseconds late_write{250};
  std::shared_ptr<server_state> server_;
  actors::executor executor_;
  shard_counts& counts_;
  std::list<listener> listeners_;
  std::vector<core::token_id> ids_;
  const std::shared_ptr<kept_jobs> jobs_;
  const std::shared_ptr<model_watch> models_;
  std::int64_t late_ = 0, lag_bytes_ = 0;                      // counted so far at this tick
  std::int64_t published_late_ = 0, published_lag_bytes_ = 0;  // this shard's part of server_state::lag
};

// Counts one coroutine of the server until this object is destroyed.
class counted_coroutine {
 public:
  explicit counted_coroutine(std::shared_ptr<server_state> s) : server_(std::move(s)) {
    server_->coroutine_begun();
  }
  counted_coroutine(const counted_coroutine&) = delete;
  counted_coroutine& operator=(const counted_coroutine&) = delete;
  ~counted_coroutine() { server_->coroutine_ended(); }

 private:
  const std::shared_ptr<server_state> server_;
};

}  // namespace weir::net
