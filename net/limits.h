// limits.h — what the server is told at start, and every bound that a client can meet. Plain data: any
// thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "core/config.h"

namespace weir::net {

// What a connection counts for in the account of memory, whatever it does: buffers, a header, the coroutine's
// frames. Bodies, messages and jobs count beside it.
inline constexpr std::size_t connection_bytes = 32 * 1024;

// What a client meets: the settings, and what is no setting.
struct server_limits : core::client_settings {
  // a connection
  std::chrono::milliseconds keep_alive{60'000};  // between two requests
  std::chrono::milliseconds body_time{30'000};
  int send_buffer = 16 * 1024;  // the kernel's: lateness is to be seen here, and merged here
  // Bytes read of a body that is too large, so that its sender can read the 413.
  std::size_t drained_bytes() const { return 2 * body_bytes; }

  // a WebSocket session
  double frame_burst = 8192;                 // frames that may come at once; one over it closes the socket
  double message_burst = 64;                 // a page may open all its lanes at once, and cancel them
  double message_abuse = 256;                // messages over the rate before the socket is closed
  std::chrono::milliseconds silent{40'000};  // nothing received for so long, pings included
  std::chrono::milliseconds closing_notice{30'000};
  std::chrono::milliseconds retain{0};  // how long a finished job can be resumed
};

struct server_options : core::listener_settings {
  std::vector<std::string> api_keys;  // none: everybody may come in
  server_limits limits;
};

}  // namespace weir::net
