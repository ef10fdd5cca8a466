// admission.h — how a WebSocket came in, and who its client is.
//
// Thread safety: plain data; one owner.
#pragma once

#include <string>

#include "core/memory/account.h"
#include "net/access/address_book.h"
#include "net/access/bearer.h"

namespace weir::net {

struct admission {
  bool authenticated = false;  // else session.auth has to come first
  bool wrong_key = false;      // a key or token came with the handshake, and is not known
  bearer from;                 // whose key or token let it in
  std::string origin;          // the Origin header; empty: there was none
  bool subprotocol = false;    // the client offered weir.v1
  address_book::entry caller;
  core::memory_hold memory;  // of the connection
  std::string request_id;
};

}  // namespace weir::net
