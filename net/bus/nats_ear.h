// nats_ear.h — the end of a subscription: takes messages on cnats' threads and posts them to the executor of
// their subscription.
//
// Thread safety: any thread.
#pragma once

#include <nats/nats.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "actors/bus.h"

namespace weir::net {

class nats_ear : public std::enable_shared_from_this<nats_ear> {
 public:
  // Bytes of messages that are posted and not handled yet; a message counts what the bus needs for it, too.
  static constexpr std::size_t most_waiting = 64 << 20, message_overhead = 256;

  nats_ear(std::string subject, actors::bus::executor ex, actors::bus::handler what)
      : subject_(std::move(subject)), ex_(std::move(ex)), what_(std::move(what)) {}

  // Sees all messages but the servers' word that nobody hears a subject.
  void take(natsMsg* m);
  // When it returns, take() posts nothing more.
  void close();

  const std::string& subject() const noexcept { return subject_; }
  std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  const std::string subject_;
  const actors::bus::executor ex_;
  const actors::bus::handler what_;
  // cnats does not say when its threads have left a callback, and executors may be gone afterwards.
  std::mutex lock_;
  bool open_ = true;
  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::uint64_t> lost_{0};
};

// cnats' closure of a subscription: what its threads use until the subscription is complete.
using nats_ear_box = std::shared_ptr<nats_ear>;
void nats_take(natsConnection*, natsSubscription*, natsMsg* m, void* box);
void nats_complete(void* box);

}  // namespace weir::net
