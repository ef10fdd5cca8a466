// http_routes.h — the routes that answer with one reply and no stream, and do not wait for long: everything
// but completions, messages, the WebSocket, what waits for models or follows them (net/http/http_models.cpp),
// and what follows an answer (net/http/http_events.cpp).
//
// Thread safety: called on the hub's shard.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>

#include "net/http/reply.h"
#include "net/http/router.h"
#include "net/hub.h"

namespace weir::net {

// Waits for nothing but answers of the service. `body`: body of a POST. `from`: the client.
boost::asio::awaitable<reply> answer_route(hub& h, const route_match& route, std::string body,
                                           const bearer& from);
// A file of the page. `accept_encoding`: what the client's header of this name says.
reply show_asset(std::string_view target, std::string_view accept_encoding);

}  // namespace weir::net
