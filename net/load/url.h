// url.h — the URL of a server: ws:// and wss:// for weir.v1, http:// and https:// for server-sent events.
//
// Thread safety: plain data and a pure function; any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"

namespace weir::load {

enum class protocol { weir, openai };

struct target {
  bool tls = false;
  protocol speaks = protocol::openai;
  std::string host, port, path;

  // Value of the Host header.
  std::string authority() const {
    const std::string name = host.find(':') == host.npos ? host : "[" + host + "]";
    return port == (tls ? "443" : "80") ? name : name + ":" + port;
  }
  bool chat() const { return path.find("/chat/") != path.npos; }
};

// The default path is /v1/stream for weir.v1 and /v1/completions otherwise. `option`: name of the option, for
// the error. Error: invalid_param.
core::result<target> parse_url(std::string_view option, std::string_view text);

}  // namespace weir::load
