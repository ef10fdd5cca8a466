// ws_protocol.h — weir.v1 without a socket: a text frame becomes a client message or a precise error, and
// what the server says is appended to a string that the caller keeps.
//
// Pure functions: any thread. Deltas are written by hand and allocate nothing once the string has grown.
//
// Order of judgement: bad_json, bad_message, unknown_type, invalid_param. An error carries the lane's id
// wherever the frame had one, so that a client can tell which of its requests was meant.
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
#include "net/json.h"

namespace weir::net::ws {

inline constexpr std::size_t max_lane_id = 64;

// ---- client to server

struct session_auth {
  std::string token;
};

struct response_create {
  std::string id;
  actors::request request;
  bool cancel_on_disconnect = false;
  bool timing = false;
  bool return_token_ids = false;
  // names of unknown fields; the last says how many more there are, beyond 16
  std::vector<std::string> ignored;
};

// Exactly one of the two is not empty.
struct response_cancel {
  std::string id, response_id;
};

struct ping {
  std::string ts;  // a number as it was written; empty: there was none
};
struct pong {};

// What `error` frames carry. `code` is one of wire.md's.
struct protocol_error {
  std::string id;
  std::string_view code;
  std::string message;
  std::string param;
  std::optional<std::int64_t> retry_after_ms;
  bool fatal = false;
};

using client_message =
    std::variant<protocol_error, session_auth, response_create, response_cancel, ping, pong>;

client_message parse(std::string_view frame, json_bounds most = {});

// ---- server to client; each appends one JSON object

struct limits {
  std::uint64_t max_jobs = 0, max_frame = 0, max_tokens = 0, detach_grace_ms = 0, retain_ms = 0,
                max_age_ms = 0;
};

struct delta {
  std::string_view id, text;
  std::uint32_t seq = 0, n = 1;
  std::optional<std::int64_t> t_us;
  std::span<const core::token_id> token_ids;  // empty: not asked for
};

void append_session_created(std::string& out, std::string_view session_id, std::string_view server,
                            std::span<const std::string> models, const limits& l);
void append_created(std::string& out, std::string_view id, std::string_view response_id,
                    std::string_view model, std::uint32_t queue_position,
                    std::span<const std::string> ignored);
void append_delta(std::string& out, const delta& d);
void append_done(std::string& out, std::string_view id, std::string_view response_id, std::uint32_t seq,
                 const actors::outcome& how);
void append_pong(std::string& out, std::string_view ts);
void append_error(std::string& out, const protocol_error& e);
void append_closing(std::string& out, std::string_view reason, std::int64_t deadline_ms);

// The wire's code for an error of ours.
std::string_view code_of(core::errc code);
// A refusal of the lane `id`.
protocol_error refusal(std::string_view id, const core::error& e);

}  // namespace weir::net::ws
