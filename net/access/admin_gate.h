// admin_gate.h — who may load, unload and swap models, and see how they stand: judged from a request's
// header, the address at the other end of its connection, and the rights of its sender.
//
// Where the server has keys, only the key of an admin may. Where it has none, only programs of this machine
// may, and no page of another site that a browser on this machine shows: such a page can send requests, also
// by a name of its own that resolves to a loopback address (DNS rebinding). A proxy on this machine makes
// every client look local. Proxies say so in headers, and a request with one of these is refused.
//
// Pure function: any thread.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/beast/http/message.hpp>
#include <optional>
#include <string>

namespace weir::net {

// Who sends a request.
struct admin_asker {
  bool no_keys = false;           // the server has no keys
  bool admin_key = false;         // the client sent the key of an admin itself
  boost::asio::ip::address peer;  // where the connection comes from
};

// Why the request may not, in a sentence that names the condition that failed; nullopt: it may.
std::optional<std::string> admin_refusal(const boost::beast::http::request_header<>& h,
                                         const admin_asker& from);

}  // namespace weir::net
