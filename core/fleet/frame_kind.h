// frame_kind.h — what a frame between the processes of a fleet is: its first byte is the version, its second
// the kind. A frame of another version, or of a kind that is not known, is dropped and counted. A frame of a
// known kind may be longer than its fields: later builds add fields at the end.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/fleet/bytes.h"

namespace weir::core::fleet {

enum class frame_kind : std::uint8_t {
  job = 1,   // a gateway gives a worker a job
  job_part,  // a piece of such a frame
  taken,     // a worker's answers to a job
  refused,
  cancel,  // what a gateway wants of a job that a worker has
  pause,
  resume,
  again,        // tell the tokens again from a position on
  adopt,        // tell them to this gateway from now on
  drop,         // forget the job
  probe,        // are you there? the answer is a board
  gone,         // a worker does not know a job that it was asked about
  tokens,       // tokens and endings of a step
  logprobs,     // the same with the logprobs of each token
  pulse,        // a gateway lives
  drain,        // an operator wants a worker to take no new jobs, and to be free in time
  undrain,      // and to take jobs again
  find,         // a gateway asks all workers for a job whose own gateway may be gone
  found,        // the job as it was sent, or a part of it, and how it stands
  adopted,      // another gateway has adopted these jobs
  crash,        // in a demonstration: the worker that has this job kills its own process
  landmarks,    // which prefixes an engine has in its cache, among the boards of its worker
  list,         // a gateway asks all workers for the jobs that they have, or wants some to end
  listed,       // a part of the answer
  permit_wish,  // who wants to give a worker an order for its models asks for a permit
  permit,       // the answer
  model_wish,   // the order
  wish_answer,  // what came of it
  load_wish,    // requests at a gateway wait for a model of the worker
  load_news,    // how that load stands
  file_wish,    // a gateway wants a piece of a model's text files
  file_part,    // the answer
  score_wish,   // a gateway wants a piece of the logprobs of a job's prompt
  score_part,   // the answer
  last = score_part
};

// Begins a frame.
inline std::string begin_frame(frame_kind k) {
  return {static_cast<char>(frame_version), static_cast<char>(k)};
}

// The kind of a frame; nullopt: it has another version or an unknown kind.
inline std::optional<frame_kind> kind_of(std::string_view frame) {
  if (frame.size() < 2 || static_cast<std::uint8_t>(frame[0]) != frame_version) return std::nullopt;
  const auto k = static_cast<std::uint8_t>(frame[1]);
  if (k == 0 || k > static_cast<std::uint8_t>(frame_kind::last)) return std::nullopt;
  return static_cast<frame_kind>(k);
}

// What follows the two bytes. REQUIRES: kind_of(frame).
inline std::string_view body_of(std::string_view frame) { return frame.substr(2); }

// The processes of a fleet have names of 16 base32 characters, which they draw at each start.
inline constexpr std::size_t name_length = 16;
bool is_name(std::string_view s);

}  // namespace weir::core::fleet
