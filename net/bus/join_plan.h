// join_plan.h — what the --join options ask for: which servers of NATS, and how the connection is secured.
//
// A connection that leaves the machine is encrypted, and both ends prove who they are: --join-ca and
// --join-nkey are required, and --join-cert with --join-key where the servers ask for a certificate. Where
// every URL is a loopback address, none of these is required.
//
// Thread safety: plain data and pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/join_config.h"

namespace weir::net {

struct join_url {
  bool tls = false;
  std::string host;  // without brackets
  std::uint16_t port = 4222;

  std::string text() const;  // nats://HOST:PORT or tls://HOST:PORT
  bool is_loopback() const;
};

struct join_plan {
  std::vector<join_url> urls;  // one or more
  bool tls = false;
  std::string ca, cert, key;  // files; empty: none. Only with tls
  std::string nkey;           // file with the seed of a user's key; empty: none
};

// nats://HOST[:PORT] or tls://HOST[:PORT], several with commas. An IPv6 address stands in brackets. A user
// and a password in a URL are refused: they would be seen in the list of processes. Error: invalid_param.
core::result<std::vector<join_url>> parse_join_urls(std::string_view text);

// Error: invalid_param, which names the option that is wrong or missing.
core::result<join_plan> join_plan_of(const core::join_settings& s);

// Error: invalid_param, where the name is none (core/fleet/subjects.h).
core::result<> check_cell(std::string_view name);

}  // namespace weir::net
