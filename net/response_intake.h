// response_intake.h — a body of the Responses API on its way to a request: it is parsed, what it goes on with
// is looked up, and the conversation is made of both.
//
// A conversation is bounded as a body is: the items that a request goes on with have at most as many bytes as
// a body may have, and all together as many JSON values.
//
// Thread safety: the coroutines on the connection's shard; read_response_body() anywhere.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/hub.h"
#include "net/protocol/responses.h"
#include "net/response_store.h"

namespace weir::net {

// A body that was parsed. Its conversation is made, unless it goes on with something.
struct read_response : responses::parsed_request {
  std::string kept_items;    // its items with ids, as JSON, once the conversation is made; else empty
  bool keeps_items = false;  // kept_items are asked for
  // Of a socket: the items of the conversation before its own, as JSON without brackets.
  std::string earlier_items;
  bool keeps_earlier = false;

  bool goes_on() const { return !previous_response_id.empty() || !referred.empty(); }
};

struct body_bounds {
  std::size_t values = SIZE_MAX;  // as in responses::parse()
  bool strict = false;
  bool of_socket = false;  // as there; what it goes on with is remembered also where it is not stored
};
core::result<read_response> read_response_body(std::string_view text, const body_bounds& most);

// Makes the conversation of a request that goes_on(). `own`: the last response of the connection, which has
// the whole conversation before it as its items; it is found also where it is not kept. Error:
// invalid_param, with previous_response_id or the place of the item as its field; overloaded.
boost::asio::awaitable<core::result<void>> bring_history(hub& h, actors::principal who,
                                                         std::shared_ptr<read_response> asked,
                                                         stored_ptr own = nullptr);

// A response that is kept, and that `who` may see; null: there is none.
boost::asio::awaitable<stored_ptr> find_stored(hub& h, std::string id, actors::principal who);

// Calls `work` here, or in the text pool in the turn of the key where the text has more than
// actors::longest_text_here bytes. `bytes`: of the text; `memory`: what the work takes, which is counted
// meanwhile. Error: overloaded.
boost::asio::awaitable<std::optional<core::error>> work_on_json(hub& h, std::uint64_t key,
                                                                std::uint64_t bytes, std::uint64_t memory,
                                                                std::function<void()> work);

}  // namespace weir::net
