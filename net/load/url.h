// url.h — where a run goes: ws:// and wss:// for weir.v1, http:// and https:// for server-sent events. Plain
// data.
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

  // What a Host header says.
  std::string authority() const {
    const std::string name = host.find(':') == host.npos ? host : "[" + host + "]";
    return port == (tls ? "443" : "80") ? name : name + ":" + port;
  }
  bool chat() const { return path.find("/chat/") != path.npos; }
};

// Without a path: /v1/stream, or /v1/completions. `option` names the option in errors.
core::result<target> parse_url(std::string_view option, std::string_view text);

}  // namespace weir::load
