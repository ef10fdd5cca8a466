// server.h — the server: listens, gives connections to the shards round-robin, drains, stops.
//
// There is one acceptor for all shards, so connections are spread evenly, port 0 is chosen once, and no
// connection is lost when the listener closes. With one acceptor for each shard (SO_REUSEPORT) the kernel
// would spread connections by a hash, and drop those that it had queued.
//
// Thread safety: every member from one thread at a time, which is no thread of a shard.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "actors/service.h"
#include "core/error.h"
#include "net/access/bearer.h"
#include "net/limits.h"
#include "net/shards.h"

namespace weir::net {

// "127.0.0.1:8080", "[::1]:0", "localhost:80".
struct listen_address {
  std::string host;
  unsigned short port = 0;
};
// `option`: the setting, which errors name.
core::result<listen_address> parse_listen(std::string_view text, const char* option = "listen");
// An address for metrics: the same, or a port alone, which is a port of 127.0.0.1.
core::result<listen_address> parse_metrics_listen(std::string_view text);

class server {
 public:
  // REQUIRES: both outlive it.
  server(actors::service& service, shards& io, server_options options);
  ~server();  // stops

  // Binds and listens. Error: an address cannot be used; the message names `listen` or `metrics-listen`.
  core::result<void> start();
  std::string host() const;     // as in the options
  unsigned short port() const;  // the one that was bound
  // The address for metrics alone, as it was bound; nullopt: there is none.
  std::optional<listen_address> metrics() const;

  // From now on the clients of these keys are served. Keys that are not among them are forgotten at once:
  // their WebSockets are closed with 4401, their HTTP connections are cut off in mid-answer, their browser
  // tokens are unknown. Nobody else notices. REQUIRES: neither `keys` nor the keys of the options are empty.
  known_bearers::difference set_keys(std::span<const api_key> keys);
  // Says in the metrics that the file of keys has changed and that its keys are not in force, until
  // set_keys().
  void set_keys_stale(bool on);

  // From now on new jobs and new WebSockets are refused. Sessions are told, and jobs that run may finish.
  // `idle` is called once, on a shard, when the last job and the last session have ended. stop() may be
  // called before that.
  void drain(std::function<void()> idle);

  // Closes every connection. Then, if the shards have threads of their own, waits until no coroutine of the
  // server is left, for at most 10 s. On an executor of the caller there is no wait: coroutines end as that
  // executor runs.
  void stop();

 private:
  struct parts;
  std::shared_ptr<parts> p_;
};

// Whether anyone who can reach the address may use the server: no key is needed, and `listen` is neither
// localhost nor a loopback address. False for a text that is no address, which start() refuses.
bool open_to_anyone(const server_options& o);
// Whether others than programs of this machine can reach `metrics_listen`.
bool metrics_open_to_anyone(const server_options& o);

}  // namespace weir::net
