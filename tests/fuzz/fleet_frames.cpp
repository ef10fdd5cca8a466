// Any bytes as a frame between the processes of a fleet: what is read keeps its limits, and is written again
// to something that is read as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/fleet/control_frame.h"
#include "core/fleet/file_frame.h"
#include "core/fleet/fleet_board.h"
#include "core/fleet/job_frame.h"
#include "core/fleet/landmarks.h"
#include "core/fleet/list_frame.h"
#include "core/fleet/order_frame.h"
#include "core/fleet/resume_part.h"
#include "core/fleet/score_frame.h"
#include "core/fleet/token_frame.h"

namespace {

using namespace weir::core;
using namespace weir::core::fleet;

void require(bool right) {
  if (!right) std::abort();
}

void judge_job(std::string_view body) {
  const time_point now{std::chrono::hours(1)};
  const auto read = read_job(body, now);
  if (!read) return require(!read.error().message.empty());
  require(!read->job.prompt.empty() && read->job.min_tokens <= read->job.max_tokens);
  const auto frames = job_frames(*read, now);
  if (!frames) return;
  std::string whole;
  for (const auto& f : *frames) {
    if (frames->size() == 1) {
      whole = body_of(f);
      break;
    }
    const auto part = read_job_part(body_of(f));
    require(part.has_value());
    whole += part->bytes;
  }
  const auto again = read_job(whole, now);
  require(again && std::ranges::equal(again->job.prompt, read->job.prompt));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto kind = kind_of(bytes)) {
    if (kind == frame_kind::job) judge_job(body_of(bytes));
    if (kind == frame_kind::job_part)
      if (const auto part = read_job_part(body_of(bytes))) require(part->part < part->of);
  }
  if (const auto c = read_control(bytes)) {
    const auto again = read_control(frame_of(*c));
    require(again && frame_of(*again) == frame_of(*c));
  }
  if (const auto p = read_resume(bytes)) {
    require(p->client.size() <= bytes.size() && p->tools.size() <= bytes.size());
    const auto again = read_resume(bytes_of(*p));
    require(again && bytes_of(*again) == bytes_of(*p));
  }
  if (const auto n = read_landmarks(bytes)) {
    require(8 * (n->came.size() + n->gone.size()) <= bytes.size());
    require(read_landmarks(frame_of(*n)) == n);
  }
  if (const auto q = read_job_question(bytes)) {
    require(!q->cancel || q->id);
    require(read_job_question(frame_of(*q)).has_value());
  }
  if (const auto l = read_listed(bytes)) {
    require(l->jobs.size() <= bytes.size() / 30 && l->part < l->of);
    const auto again = read_listed(frame_of(*l));
    require(again && frame_of(*again) == frame_of(*l));
  }
  if (const auto w = read_model_wish(bytes)) {
    require(w->name.size() <= longest_wish_name && w->body.size() <= longest_wish);
    const auto again = read_model_wish(frame_of(*w));
    require(again && frame_of(*again) == frame_of(*w));
  }
  if (const auto a = read_wish_answer(bytes)) {
    require(a->headers.size() <= most_answer_headers && a->body.size() <= longest_answer);
    require(read_wish_answer(frame_of(*a)).has_value());
  }
  if (const auto p = read_permit(bytes)) require(read_permit(frame_of(*p)).has_value());
  if (const auto l = read_file_list(bytes)) {
    std::uint64_t all = 0;
    for (const auto& f : l->files) {
      all += f.size;
      require(f.name.find("..") == f.name.npos && !f.name.starts_with('/'));
      require(l->gguf_size == 0 || f.at + f.size <= l->gguf_size);
    }
    const auto again = read_file_list(bytes_of(*l));
    require(all <= most_file_bytes && again && bytes_of(*again) == bytes_of(*l));
  }
  if (const auto w = read_file_wish(bytes)) require(read_file_wish(frame_of(*w)).has_value());
  if (const auto p = read_file_part(bytes)) {
    require(p->bytes.size() <= longest_file_part && (p->there || p->bytes.empty()));
    require(read_file_part(frame_of(*p)).has_value());
  }
  if (const auto w = read_score_wish(bytes)) require(read_score_wish(frame_of(*w)).has_value());
  if (const auto p = read_score_part(bytes)) {
    require(6 * p->tokens.size() <= bytes.size() && p->tokens.size() <= p->of - p->at);
    const auto again = read_score_part(score_part_of(p->job, p->at, p->of, p->tokens, longest_score_part));
    require(again && again->tokens.size() == p->tokens.size());
  }
  token_frame f;
  if (f.read(bytes))
    for (const auto& j : f.jobs) require(j.begin <= j.end && j.end <= f.tokens.size());
  if (const auto b = read_board(bytes)) require(read_board(json_of(*b)).has_value());
  return 0;
}
