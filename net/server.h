// server.h — the server: listens, deals connections to the shards round-robin, drains, stops.
//
// One acceptor deals round-robin: connections are spread evenly by construction, port 0 is picked once, and
// none is lost when the listener closes (with SO_REUSEPORT the kernel spreads by hash and drops what it had
// queued).
//
// Thread safety: every member from one thread at a time, which is none of the shards'.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "actors/service.h"
#include "core/error.h"
#include "net/limits.h"
#include "net/shards.h"

namespace weir::net {

class server {
 public:
  // REQUIRES: both outlive it.
  server(actors::service& service, shards& io, server_options options);
  ~server();  // stops

  // Binds and listens. An address that cannot be used is an error naming `listen`.
  core::result<void> start();
  std::string host() const;     // as in the options
  unsigned short port() const;  // the one that was bound

  // No new jobs, no new WebSockets; sessions are told; what runs may finish. `idle` is called once, on a
  // shard, when the last job and the last session have ended. stop() may come before.
  void drain(std::function<void()> idle);

  // Closes every connection and waits until nothing of the server runs any more; on an executor of the
  // caller's own it does not wait, and what is left ends as that executor runs.
  void stop();

 private:
  struct parts;
  std::shared_ptr<parts> p_;
};

// "127.0.0.1:8080", "[::1]:0", "localhost:80".
struct listen_address {
  std::string host;
  unsigned short port = 0;
};
core::result<listen_address> parse_listen(std::string_view text);

}  // namespace weir::net
