// submit.h — the one way by which a client's request becomes jobs: what its key forbids is refused here, over
// HTTP and WebSocket alike.
//
// Thread safety: any thread; submit_as() as service::submit().
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/service.h"
#include "net/access/bearer.h"
#include "net/http/reply.h"

namespace weir::net {

// Why a key does not let its client do this.
struct key_refusal {
  enum class kind {
    unknown_key,  // the key has left the file of keys since the request began
    model,        // the key does not allow the model
    no_model,     // the key allows the model, which is not served; or it is not clear which model is meant
    field,        // the value of a field is over what the key allows; `param` names the field
    limit,        // too many jobs or tokens: again after `retry_after`
  } why;
  std::string message;
  std::string param = {};
  std::chrono::milliseconds retry_after{0};
};

key_refusal too_much(known_key::limit_refusal no);

// 401 invalid_api_key, 403 model_forbidden, 404 model_not_found, 400 invalid_param, or 429 rate_limited with
// Retry-After and, exact, retry-after-ms.
reply error_reply(const key_refusal& no);

// Sets `model` to the model behind it, where it is an alias. If `model` is empty and the client may not use
// all models, sets `model` to the only served one that it may use. A model that its key may not use is
// refused, whether it is served or not.
std::optional<key_refusal> judge_model(const actors::service& s, const bearer& from, std::string& model);

// Submits a request of `n` choices for a client: with its key's priority, counted for its key. The refusals
// of the service itself come through the streams. A request that is refused here stays with the caller.
// REQUIRES: n >= 1; called on `shard`'s thread.
boost::system::result<std::vector<std::shared_ptr<actors::job_stream>>, key_refusal> submit_as(
    actors::service& s, const bearer& from, actors::request&& r, std::uint32_t n, actors::executor shard,
    actors::job_stream::reader changed);

// Begins work on a text for a client: f(text_client) asks the service for it. It counts for the client's key
// as one job does.
template <class F>
std::optional<key_refusal> begin_text(const bearer& from, core::time_point now, F f) {
  const auto accounts = from.key ? from.key->accounts() : actors::job_accounts();
  const actors::text_client client{from.who.key, accounts};
  if (!from.key) return f(client), std::nullopt;
  auto no = from.key->begin(1, now, [&] { f(client); });
  return no ? std::optional(too_much(std::move(*no))) : std::nullopt;
}

using headers = std::vector<std::pair<std::string, std::string>>;

// OpenAI's x-ratelimit-limit-, -remaining- and -reset- headers, for requests and for tokens, each only where
// the key has that limit. `requests` are unfinished jobs here.
headers rate_limit_headers(const bearer& from, core::time_point now);

// As OpenAI writes times in these headers: 0s, 17ms, 1.5s, 6m0s. Parts of a ms count as one.
std::string duration_text(core::duration d);

}  // namespace weir::net
