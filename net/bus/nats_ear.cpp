#include "net/bus/nats_ear.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace weir::net {

void nats_ear::take(natsMsg* m) {
  if (natsMsg_IsNoResponders(m)) return;
  const char* answer_to = natsMsg_GetReply(m);
  actors::bus::message out{
      natsMsg_GetSubject(m), answer_to ? answer_to : "",
      std::string(natsMsg_GetData(m), static_cast<std::size_t>(natsMsg_GetDataLength(m)))};
  const std::size_t size = out.subject.size() + out.answer_to.size() + out.bytes.size() + message_overhead;
  const std::lock_guard hold(lock_);
  if (!open_) return;
  if (waiting_.fetch_add(size) + size > most_waiting) {
    waiting_.fetch_sub(size);
    lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  boost::asio::post(ex_, [self = shared_from_this(), size, out = std::move(out)]() mutable {
    self->waiting_.fetch_sub(size);
    self->what_(std::move(out));
  });
}

void nats_ear::close() {
  const std::lock_guard hold(lock_);
  open_ = false;
}

void nats_take(natsConnection*, natsSubscription*, natsMsg* m, void* box) {
  (*static_cast<nats_ear_box*>(box))->take(m);
  natsMsg_Destroy(m);
}

void nats_complete(void* box) { delete static_cast<nats_ear_box*>(box); }

}  // namespace weir::net
