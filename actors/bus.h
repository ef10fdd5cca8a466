// bus.h — how processes of a fleet talk: messages under subjects, as NATS has them. The one seam between the
// fleet and its transport.
//
// A subject is words joined by dots. A subscription's subject may have `*` for one word and `>` as its last
// word for one or more. Messages of one publisher under subjects of one subscription arrive in the order in
// which they were published; a message may be lost, and nobody is told. What needs an answer asks for one.
//
// Thread safety: any thread. Handlers run on the executor that their subscription names.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/error.h"

namespace weir::actors {

class bus {
 public:
  using executor = boost::asio::any_io_executor;

  struct message {
    std::string subject;
    std::string answer_to;  // where an answer is published; empty: nobody waits for one
    std::string bytes;
  };
  using handler = std::function<void(message)>;

  // Ends its subscription when it is destroyed; a handler that was posted before may still run.
  class subscription {
   public:
    virtual ~subscription() = default;
  };

  enum class link {
    up,
    down,    // it comes back by itself; what is published meanwhile may be lost
    closed,  // for good
  };

  bus() = default;
  bus(const bus&) = delete;
  bus& operator=(const bus&) = delete;
  virtual ~bus() = default;

  // Never blocks, and takes at most most_bytes(). False: nothing was sent, since the message is too long, the
  // link is down or too much waits to be sent.
  virtual bool publish(std::string_view subject, std::string_view bytes) = 0;
  // Publishes a message whose answer is to be published under `answer_to`.
  virtual bool publish(std::string_view subject, std::string_view answer_to, std::string_view bytes) = 0;

  // `what` is posted to `ex`, a message a call, in order.
  virtual core::result<std::unique_ptr<subscription>> subscribe(std::string subject, executor ex,
                                                                handler what) = 0;

  struct answer {
    enum class how { came, nobody_there, too_late, not_sent } how = how::not_sent;
    std::string bytes;  // if it came
  };
  // Publishes with an inbox of this process as `answer_to`. `done` is posted to `ex` once: with the first
  // answer, or with the reason why there is none. nobody_there: no process has a subscription for the
  // subject.
  virtual void ask(std::string_view subject, std::string_view bytes, core::duration patience, executor ex,
                   std::function<void(answer)> done) = 0;

  virtual link state() const noexcept = 0;
  // Posts each change of state to `ex`, until the bus is destroyed. One watcher a bus.
  virtual void watch(executor ex, std::function<void(link)> changed) = 0;
  // Of one message; constant once the bus was up.
  virtual std::size_t most_bytes() const noexcept = 0;
};

}  // namespace weir::actors
