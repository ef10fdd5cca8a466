// limits.h — the options of the server, and every limit on a client. Plain data: any thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/error.h"
#include "core/fleet/order_frame.h"
#include "core/grammar/schema/json_tree.h"
#include "core/job.h"
#include "net/access/api_keys.h"

namespace weir::actors::fleet {
struct fleet_figures;
}

namespace weir::net {

// The memory that is accounted for each connection: buffers, a header, the coroutine's frames. Bodies,
// messages and jobs are accounted separately.
inline constexpr std::size_t connection_bytes = 32 * 1024;

// The limits on a client: those that are settings, and those that are not.
struct server_limits : core::client_settings {
  // a connection
  std::size_t header_bytes = 8 * 1024;           // of a request; also of the first message of a WebSocket
  std::size_t json_values = 1 << 18;             // values and keys that the JSON of a body or frame may have
  std::chrono::milliseconds keep_alive{60'000};  // between two requests
  std::chrono::milliseconds body_time{30'000};
  // Size of the kernel's send buffer. It is small, so that tokens that a slow client has not read wait in the
  // server, which sees the delay and merges them.
  int send_buffer = 16 * 1024;
  std::size_t model_followers = 128;  // that follow the states of models, of all clients together
  // Most bytes that are read of a body that is too large, so that its sender can read the 413.
  std::size_t drained_bytes() const { return 2 * body_bytes; }

  // a WebSocket session
  // Bytes of a message: `frame_bytes`, and as many for a JSON Schema as a schema may have.
  std::size_t message_bytes() const { return frame_bytes + core::grammar::json_tree_bounds().bytes; }
  double frames_per_s = 1000;                // of any kind: fragments, pings and pongs too
  double frame_burst = 8192;                 // frames that may come at once; one more closes the socket
  double message_burst = 64;                 // a page may open all its lanes at once, and cancel all at once
  double message_abuse = 256;                // messages over the rate before the socket is closed
  std::chrono::milliseconds silent{40'000};  // nothing received for so long, pings included
  std::chrono::milliseconds closing_notice{30'000};
  std::size_t followers = 16;  // lanes and streams of events that follow one job at a time
};

struct request_record;

struct server_options : core::listener_settings {
  std::vector<api_key> api_keys;  // known from the start; empty: no key is needed, ever
  std::string token_secret;       // signs browser tokens; empty: a random one
  server_limits limits;
  // Gets the record of each request whose jobs have ended (net/request_record.h), on the request's shard.
  std::function<void(const request_record&)> on_request = {};
  // Of a gateway: what it sees of its fleet, for /metrics and /v1/stats; null: nothing yet. Called on any
  // thread. Empty: the server is no gateway.
  std::function<std::shared_ptr<const actors::fleet::fleet_figures>()> fleet = {};
  // Of a gateway: gives a worker an order for its models, as gateway_side::order(). Called on any thread.
  // Empty: the server is no gateway.
  std::function<void(std::string worker, core::fleet::model_wish wish, boost::asio::any_io_executor ex,
                     std::function<void(core::result<core::fleet::wish_answer>)> done)>
      order_worker = {};
  // Of a gateway in a demonstration: kills the worker where this job runs. Called on any thread. Empty: there
  // is no such route.
  std::function<void(const core::job_id&)> kill_worker_of = {};
};

}  // namespace weir::net
