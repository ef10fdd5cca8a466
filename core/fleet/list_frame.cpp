#include "core/fleet/list_frame.h"

#include <algorithm>

#include "core/engine.h"
#include "core/fleet/bytes.h"
#include "core/fleet/frame_kind.h"

namespace weir::core::fleet {
namespace {

constexpr std::size_t least_job = 30;  // bytes of a listed job
constexpr std::size_t list_head = 64;  // more than what stands before the jobs of a part

// What one frame has, for both directions.
template <class IO, class T>
void lister_field(IO& io, T& name) {
  io(name);
  if constexpr (!IO::writes)
    if (!is_name(name)) io.fail();
}

template <class IO, class T>
void question_fields(IO& io, T& q) {
  io(q.question);
  lister_field(io, q.gateway);
  bool of_one = q.who.has_value();
  io(of_one);
  if constexpr (!IO::writes)
    if (of_one) q.who.emplace();
  if (of_one) {
    io(q.who->key);
    io(q.who->user);
  }
  io(q.id);
  io(q.cancel);
  if constexpr (!IO::writes)
    if (q.cancel && !q.id) io.fail();
}

template <class IO, class T>
void listed_job_fields(IO& io, T& j) {
  io(j.id);
  io(j.attempt);
  lister_field(io, j.gateway);
  io(j.model);
  io.one_of(j.state, sequence_state::finished);
  io.one_of(j.reason, finish_reason::error);
  for (auto* n : {&j.prompt_tokens, &j.output_tokens, &j.cached_tokens, &j.pages, &j.preemptions}) io(*n);
  io(j.priority);
  io(j.age);
  if constexpr (!IO::writes)
    if (j.model.size() > longest_model_name) io.fail();
}

template <class IO, class T>
void listed_fields(IO& io, T& l) {
  io(l.question);
  lister_field(io, l.worker);
  io(l.part);
  io(l.of);
  io(l.left_out);
}

std::string listed_bytes(const listed_job& j) {
  std::string out;
  byte_writer to(out);
  listed_job_fields(to, j);
  return out;
}

}  // namespace

std::string frame_of(const job_question& q) {
  std::string out = begin_frame(frame_kind::list);
  byte_writer to(out);
  question_fields(to, q);
  return out;
}

std::optional<job_question> read_job_question(std::string_view frame) {
  if (kind_of(frame) != frame_kind::list) return std::nullopt;
  byte_reader from(body_of(frame));
  job_question q;
  question_fields(from, q);
  return from.failed() ? std::nullopt : std::optional(std::move(q));
}

std::string frame_of(const listed& part) {
  std::string out = begin_frame(frame_kind::listed);
  byte_writer to(out);
  listed_fields(to, part);
  to.list(part.jobs, 0, [&](const listed_job& j) { listed_job_fields(to, j); });
  return out;
}

std::vector<std::string> listed_frames(std::uint64_t question, const std::string& worker,
                                       const std::vector<listed_job>& jobs, std::size_t longest) {
  std::vector<listed> parts(1);
  std::size_t taken = list_head, n = 0;
  for (; n < std::min(jobs.size(), most_listed); ++n) {
    const std::size_t takes = listed_bytes(jobs[n]).size();
    if (taken + takes > longest) {
      if (parts.size() == most_list_parts) break;
      parts.emplace_back();
      taken = list_head;
    }
    taken += takes;
    parts.back().jobs.push_back(jobs[n]);
  }
  std::vector<std::string> out;
  for (auto& p : parts) {
    p.question = question;
    p.worker = worker;
    p.part = static_cast<std::uint32_t>(out.size());
    p.of = static_cast<std::uint32_t>(parts.size());
    p.left_out = static_cast<std::uint32_t>(jobs.size() - n);
    out.push_back(frame_of(p));
  }
  return out;
}

std::optional<listed> read_listed(std::string_view frame) {
  if (kind_of(frame) != frame_kind::listed) return std::nullopt;
  byte_reader from(body_of(frame));
  listed l;
  listed_fields(from, l);
  if (l.of > most_list_parts || l.part >= l.of) from.fail();
  const std::size_t n = from.count(least_job, most_listed);
  for (std::size_t i = 0; i < n && !from.failed(); ++i) listed_job_fields(from, l.jobs.emplace_back());
  return from.failed() ? std::nullopt : std::optional(std::move(l));
}

}  // namespace weir::core::fleet
