// ws_protocol.h — weir.v1 without a socket: parses the text frames of a client, and appends the server's
// frames to a string that the caller reuses.
//
// Errors are checked in this order: bad_json, bad_message, unknown_type, invalid_param. An error has the id
// of the lane if the frame has one, so that the client knows which of its requests is wrong.
//
// Thread safety: pure functions, any thread. append_delta() does not allocate once the string has grown.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/job_stream.h"
#include "actors/request.h"
#include "core/grammar/rules.h"
#include "net/protocol/answer_piece.h"
#include "net/protocol/json.h"
#include "net/protocol/logprobs.h"

namespace weir::net::ws {

inline constexpr std::size_t max_lane_id = 64;  // bytes

// ---- client to server

struct session_auth {
  std::string token;  // an API key or a browser token
};

// How a lane gets a response.
struct follow_options {
  bool timing = false;            // deltas have the time at which their last token was sampled
  bool return_token_ids = false;  // deltas have token ids
  bool pad = false;               // deltas are padded, so that their sizes do not tell the tokens' lengths
  bool even = false;  // pace "even": tokens are sent at the job's mean rate (net/ws/token_pacer.h)
  std::uint32_t window = 0;       // most tokens that are sent and not acknowledged; 0: no limit
};

// The members of follow_options that a message names.
struct follow_wishes {
  std::optional<bool> timing, return_token_ids, pad, even;
  std::optional<std::uint32_t> window;
  // A member that is not named is taken from `otherwise`.
  follow_options over(follow_options otherwise) const;
};

struct response_create {
  std::string id;  // of the lane, chosen by the client
  actors::request request;
  follow_wishes how;
  bool cancel_on_disconnect = false;
  std::string metadata;  // JSON text of an object, at most 4 KiB; empty: none
  std::vector<std::string> ignored;  // unknown fields, as ignored_fields::told()
};

// Names the response by the lane's id or by the server's response_id: exactly one of the two is not empty.
struct response_cancel {
  std::string id, response_id;
};

// Follows a job from another lane, most often after the first socket was lost.
struct response_resume {
  std::string id;           // of the new lane
  std::string response_id;  // as the client wrote it; it may be no job's
  std::uint64_t after = 0;  // the last seq that the client has seen
  follow_wishes how;        // a member that is not named is as the job was created
};

// The client has taken the tokens of a lane up to `seq`.
struct response_ack {
  std::string id;
  std::uint64_t seq = 0;
};

struct ping {
  std::string ts;  // a number as the client spelled it; empty: none
};
struct pong {};

// The content of an `error` frame.
struct protocol_error {
  std::string id;         // of the lane; empty: the error is of the whole session
  std::string_view code;  // one of the codes in docs/wire.md
  std::string message;
  std::string param;  // name of the field that is wrong; empty: none
  std::optional<std::int64_t> retry_after_ms;
  bool fatal = false;  // the server closes the socket
};

using client_message = std::variant<protocol_error, session_auth, response_create, response_cancel,
                                    response_resume, response_ack, ping, pong>;

// Parses a text frame. A frame that is wrong gives a protocol_error.
client_message parse(std::string_view frame, json_bounds most = {});

// ---- server to client: each function appends one JSON object

// The limits that session.created tells a client, with the units of docs/wire.md.
struct limits {
  std::uint64_t max_jobs = 0, max_frame = 0, max_tokens = 0, detach_grace_ms = 0, retain_ms = 0,
                max_age_ms = 0;
};

struct delta {
  std::string_view id, text;
  std::uint32_t seq = 0, n = 1;  // tokens of the response so far, this delta included; tokens of this delta
  std::optional<std::int64_t> t_us;  // when its last token was sampled; nullopt: the client did not ask
  std::span<const core::token_id> token_ids;  // empty: the client did not ask
  const logprobs_part* logprobs = nullptr;    // null: the client did not ask
  const answer_piece* news = nullptr;  // of an answer that was taken apart: the parts of `text`; else null
  // Pads the frame to a multiple of 64 bytes, and by 0 to 3 times 64 bytes more; nullopt: no padding.
  std::optional<std::uint32_t> more_padding;
};

// What the frames of a lane repeat.
struct lane_names {
  std::string_view id, response_id;
  std::string_view metadata = {};  // JSON text, as in response_create
};

void append_session_created(std::string& out, std::string_view session_id, std::string_view server,
                            std::span<const std::string> models, const limits& l);
void append_created(std::string& out, const lane_names& lane, std::string_view model,
                    std::uint32_t queue_position, std::span<const std::string> ignored,
                    std::span<const core::grammar::warning> warnings = {}, bool loading = false);
// What a response is told whose response.created said that its model is being loaded.
void append_loaded(std::string& out, const lane_names& lane, std::uint32_t queue_position,
                   std::span<const core::grammar::warning> warnings);
void append_delta(std::string& out, const delta& d);
// `head`: tokens of the response so far. `status`: as in response.done, or in_progress.
void append_resumed(std::string& out, const lane_names& lane, std::uint32_t after, std::uint32_t head,
                    std::string_view status);
void append_done(std::string& out, const lane_names& lane, std::uint32_t seq, const actors::outcome& how);
void append_pong(std::string& out, std::string_view ts);
void append_error(std::string& out, const protocol_error& e);
void append_closing(std::string& out, std::string_view reason, std::int64_t deadline_ms);

// The code in docs/wire.md for an error code of core.
std::string_view code_of(core::errc code);
// The same of an error. One about the field `model` says that the model is not ready: model_loading where it
// may be later, does_not_fit where no device has room for it, model_line_full and other_model_loading where
// the request may not wait for it.
std::string_view code_of(const core::error& e);
// The error frame for a job of lane `id` that was refused.
protocol_error refusal(std::string_view id, const core::error& e);

}  // namespace weir::net::ws
