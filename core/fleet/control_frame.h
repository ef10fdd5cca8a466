// control_frame.h — the small frames of a fleet: what a gateway wants of a job that a worker has, and what
// the worker answers.
//
// A job is named by its id and its attempt: a frame that names another attempt than the newest is void.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"
#include "core/fleet/bytes.h"
#include "core/fleet/frame_kind.h"
#include "core/fleet/order_frame.h"
#include "core/job.h"
#include "core/token_sink.h"

namespace weir::core::fleet {

struct job_name {
  job_id id;
  std::uint8_t attempt = 0;
  friend bool operator==(const job_name&, const job_name&) = default;
};

// Most jobs that one frame names.
inline constexpr std::size_t most_named = 4096;

// ---- from a worker

// The worker has the job, and will end it.
struct taken {
  static constexpr auto kind = frame_kind::taken;
  job_name job;
  std::uint32_t ahead = 0;       // jobs that waited there before it
  std::uint64_t arithmetic = 0;  // the class of the engine that runs it; 0: not known, or said before
};
// The worker has not taken the job, and forgets it.
struct refused {
  static constexpr auto kind = frame_kind::refused;
  job_name job;
  error why;
};
// The worker does not know these jobs: it never had them, or has forgotten them.
struct gone {
  static constexpr auto kind = frame_kind::gone;
  std::string worker;
  std::vector<job_name> jobs;
};

// The answer to `find`: the job as it was sent to the worker, in one or several parts, and how it stands.
struct found {
  static constexpr auto kind = frame_kind::found;
  job_name job;
  std::uint64_t question = 0;  // as in the frame that asked
  std::string worker, model;
  std::uint64_t engine = 0;  // the worker's number of the engine that runs it
  duration since{};          // since the worker received it
  std::uint32_t tokens = 0;  // of the output so far, those that were spoken included
  bool ended = false;
  std::uint32_t part = 0, of = 1;  // part < of <= most_found_parts
  std::string bytes;               // of the body of the job's frame
};
// Another gateway has adopted these jobs: this one hears no more of them.
struct adopted {
  static constexpr auto kind = frame_kind::adopted;
  std::string worker;
  std::vector<job_name> jobs;
};

// ---- from a gateway

struct cancel {
  static constexpr auto kind = frame_kind::cancel;
  job_name job;
  finish_reason why = finish_reason::cancel;
};
struct pause {
  static constexpr auto kind = frame_kind::pause;
  job_name job;
  duration longest{};  // from now on
};
struct resume {
  static constexpr auto kind = frame_kind::resume;
  job_name job;
};
// Tell the tokens of these jobs again.
struct again {
  static constexpr auto kind = frame_kind::again;
  struct place {
    job_name job;
    std::uint32_t after = 0;  // tokens of the output that the gateway has, those that were spoken included
  };
  std::string gateway;
  std::vector<place> jobs;
};
// Which worker has this job? Only the one that has it under the same key answers, with `found`.
struct find {
  static constexpr auto kind = frame_kind::find;
  job_id id;
  std::uint64_t key = 0;       // as job::key: a part of the key's hash, never the key
  std::uint64_t question = 0;  // a random number, by which an answer is known
  std::string gateway;         // that asks
};
// A gateway takes over a job that another gateway has, or had. `key`: as job::key, and must be equal. `job`
// may name an older attempt. The worker gives the job the next number of an attempt, so that what the former
// gateway says of it is void, and answers with `taken` and that number. Then it tells what follows `after`.
struct adopt {
  static constexpr auto kind = frame_kind::adopt;
  job_name job;
  std::uint64_t key = 0;
  std::string gateway;
  std::uint32_t slot = 0, after = 0;
};
// The gateway needs nothing of these jobs any more, whatever they do: they end.
struct drop {
  static constexpr auto kind = frame_kind::drop;
  std::vector<job_name> jobs;
};
struct probe {
  static constexpr auto kind = frame_kind::probe;
};
// A worker that was started for a demonstration (worker_options::on_crash) kills its process if it has this
// job. All others count the frame as broken.
struct crash {
  static constexpr auto kind = frame_kind::crash;
  job_name job;
};
struct pulse {
  static constexpr auto kind = frame_kind::pulse;
  std::string gateway;
  std::uint32_t jobs = 0;  // that the gateway has
};

// Requests at this gateway wait for a model that the worker could load. The first such frame has a fresh
// permit (order_frame.h), which is the wish's number from then on. The gateway repeats the frame for as long
// as somebody waits, and says where nobody does any more. The answer is a `load_news`.
struct load_wish {
  static constexpr auto kind = frame_kind::load_wish;
  std::uint64_t number = 0;
  std::string gateway;
  std::string model;  // at most longest_wish_name bytes
  bool over = false;
};

enum class load_stand : std::uint8_t {
  waits,    // in the worker's line, or its load is under way
  ready,    // requests may come
  refused,  // the worker does not load it: `why`
  unknown,  // there is no wish of this number: a permit is missing
};
struct load_news {
  static constexpr auto kind = frame_kind::load_news;
  std::uint64_t number = 0;
  load_stand now = load_stand::waits;
  error why;  // of `refused` alone
};

// ---- from an operator; a worker answers with its board

// As worker_side::drain(), but the process goes on.
struct drain {
  static constexpr auto kind = frame_kind::drain;
  duration limit{};  // from now on; what is not over then moves
};
// Void for a worker whose process ends.
struct undrain {
  static constexpr auto kind = frame_kind::undrain;
};

using control = std::variant<taken, refused, gone, found, adopted, cancel, pause, resume, again, find, adopt,
                             drop, probe, crash, pulse, load_wish, load_news, drain, undrain>;

std::string frame_of(const control& c);
// nullopt: no control frame, or one that is cut or has a value that it may not have.
std::optional<control> read_control(std::string_view frame);

// The frames of an answer whose job has these bytes: `head` without part, of and bytes; at most `longest`
// bytes each. Empty: they would be more than most_found_parts, which is more than a job's own frames take.
inline constexpr std::uint32_t most_found_parts = 20;
std::vector<std::string> found_frames(const found& head, std::string_view job, std::size_t longest);

// An error as part of a frame; at most longest_message bytes of its message travel.
inline constexpr std::size_t longest_message = 1024;
void write_error(byte_writer& to, const error& e);
void read_error(byte_reader& from, error& e);

}  // namespace weir::core::fleet
