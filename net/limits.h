// limits.h — what the server is told at start, and every bound that a client can meet. Plain data: any
// thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::net {

// What a connection counts for in the account of memory, whatever it does: buffers, a header, the coroutine's
// frames. Bodies, messages and jobs count beside it.
inline constexpr std::size_t connection_bytes = 32 * 1024;

struct server_limits {
  // a connection
  std::size_t sockets_per_address = 64;  // beyond: 429, or 1013 after the upgrade; 64 further: hung up
  std::vector<std::string> trusted = {"127.0.0.1", "::1"};  // addresses that are not counted
  std::size_t json_depth = 16;
  std::size_t json_values = 1 << 18;  // and keys, of one body or frame
  std::size_t header_bytes = 8 * 1024;
  std::size_t body_bytes = 2 * 1024 * 1024;
  std::size_t drained_bytes =
      4 * 1024 * 1024;  // of a body that is too large, so that its sender can read the 413
  std::chrono::milliseconds handshake{5'000};    // from accept to the end of the first header
  std::chrono::milliseconds keep_alive{60'000};  // between two requests
  std::chrono::milliseconds body_time{30'000};
  int send_buffer = 16 * 1024;  // the kernel's: lateness is to be seen here, and merged here

  // a WebSocket session
  std::size_t frame_bytes = 256 * 1024;
  double frames_per_s = 1000;  // WebSocket frames of every kind: fragments, pings and pongs too
  double frame_burst = 8192;   // frames that may come at once; one over it closes the socket
  std::size_t jobs = 32;
  double messages_per_s = 20;
  double message_burst = 64;   // a page may open all its lanes at once, and cancel them
  double message_abuse = 256;  // messages over the rate before the socket is closed
  std::chrono::milliseconds authenticate{10'000};
  std::chrono::milliseconds silent{40'000};  // nothing received for so long, pings included
  std::chrono::milliseconds max_age{3'600'000};
  std::chrono::milliseconds closing_notice{30'000};

  // a reader that does not keep up
  std::chrono::milliseconds write_time{10'000};
  std::size_t backlog_bytes = 256 * 1024;

  // a job whose reader is gone
  std::chrono::milliseconds detach_grace{30'000};
  std::chrono::milliseconds retain{0};  // how long a finished job can be resumed
};

struct server_options {
  std::string listen = "127.0.0.1:8080";    // HOST:PORT; port 0 picks a free one
  std::vector<std::string> allow_origin;    // beside the server's own
  std::vector<std::string> api_keys;        // none: everybody may come in
  std::chrono::milliseconds drain{30'000};  // announced when the server closes
  server_limits limits;
};

}  // namespace weir::net
