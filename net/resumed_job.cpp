#include "net/resumed_job.h"

#include <utility>

#include "core/fleet/bytes.h"
#include "net/http/answer_encoders.h"

namespace weir::net {
namespace {

template <class IO, class J>
void fields(IO& io, J& job) {
  auto& how = job.as_created;
  for (auto* flag : {&how.timing, &how.return_token_ids, &how.pad, &how.even, &job.cancel_when_left,
                     &job.pause_on_lag, &job.ending_is_kept})
    io(*flag);
  io(how.window);
  io(job.metadata);
}

}  // namespace

std::shared_ptr<const std::string> bytes_of(const kept_job& job) {
  auto out = std::make_shared<std::string>();
  core::fleet::byte_writer to(*out);
  fields(to, job);
  to(job.answer != nullptr);
  if (!job.answer) return out;
  const auto answer = bytes_of(*job.answer);
  if (!answer) return nullptr;
  to.text(*answer);
  return out;
}

std::optional<kept_job> kept_job_of(const server_state& all, actors::found_job found) {
  kept_job job;
  job.stream = std::move(found.stream);
  job.owner = found.owner;
  if (found.client.empty()) return job;  // a further choice
  core::fleet::byte_reader from(found.client);
  fields(from, job);
  bool has_answer = false;
  from(has_answer);
  if (has_answer) {
    job.answer = read_answer(from.text(), std::move(found.choices), job.owner, all.service.memory());
    if (!job.answer) return std::nullopt;
  }
  if (from.failed()) return std::nullopt;
  return job;
}

void make_resumable(const hub& h, actors::request& r, const kept_job& job) {
  if (h.server().service.finds_elsewhere()) r.resumable = bytes_of(job);
}

template <class Encoder>
void make_resumable(const hub& h, actors::request& r, const Encoder& encoder) {
  if (!h.server().service.finds_elsewhere()) return;
  kept_job job;
  job.answer = std::make_shared<const kept_answer>(kept_answer{encoder, {}});
  job.ending_is_kept = is_response(*job.answer);
  r.resumable = bytes_of(job);
}

template void make_resumable(const hub&, actors::request&, const openai_encoder&);
template void make_resumable(const hub&, actors::request&, const anthropic_encoder&);
template void make_resumable(const hub&, actors::request&, const responses_encoder&);

}  // namespace weir::net
