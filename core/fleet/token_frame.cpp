#include "core/fleet/token_frame.h"

#include "core/fleet/control_frame.h"
#include "core/fleet/logprob_bytes.h"

namespace weir::core::fleet {
namespace {

constexpr std::size_t least_job_bytes = 5, least_token_bytes = 2;
constexpr std::int64_t longest_us = std::int64_t{1} << 51;  // 71 years

std::int64_t us(duration d) { return std::chrono::duration_cast<std::chrono::microseconds>(d).count(); }

// Times of an ending count from `created`.
template <class IO, class E>
void ending_fields(IO& io, E& e, time_point created) {
  io.one_of(e.reason, finish_reason::error);
  io(e.stop_string);
  io(e.input_tokens);
  io(e.output_tokens);
  io(e.cached_tokens);
  io(e.shifts);
  io(e.shown_bytes);
  for (auto* at : {&e.scheduled, &e.first_token, &e.last_token, &e.released}) {
    std::optional<duration> since;
    if constexpr (IO::writes) {
      if (*at) since = **at - created;
      io(since);
    } else {
      io(since);
      if (since) *at = created + *since;
    }
  }
  io(e.max_gap);
}

}  // namespace

token_frame_writer::token_frame_writer(std::string_view worker, bool with_logprobs)
    : worker_(worker), with_logprobs_(with_logprobs) {}

void token_frame_writer::job(std::uint32_t slot, std::uint8_t attempt, std::uint32_t from,
                             std::uint32_t count, bool ended) {
  ++jobs_;
  before_us_ = 0;
  byte_writer to(bytes_);
  to(slot);
  to(attempt);
  to(ended);
  to(from);
  to(count);
}

void token_frame_writer::add(const sent_token& t) {
  byte_writer to(bytes_);
  to.varint(static_cast<std::uint64_t>(t.id));
  const std::int64_t at = us(t.at);
  to.zigzag(at - before_us_);
  before_us_ = at;
}

void token_frame_writer::add(const sent_token& t, std::span<const token_logprob> all) {
  add(t);
  byte_writer to(bytes_);
  auto likeliest = all.subspan(1);
  while (!likeliest.empty() && likeliest.back().id < 0) likeliest = likeliest.first(likeliest.size() - 1);
  write_logprobs(to, all.front().logprob, likeliest);
}

void token_frame_writer::end(const ending& how, time_point created) {
  byte_writer to(bytes_);
  ending_fields(to, how, created);
  to(how.fault.has_value());
  if (how.fault) write_error(to, *how.fault);
}

std::string token_frame_writer::take(std::uint64_t serial) {
  std::string frame = begin_frame(with_logprobs_ ? frame_kind::logprobs : frame_kind::tokens);
  byte_writer to(frame);
  to.text(worker_);
  to(serial);
  to(std::exchange(jobs_, 0));
  frame += bytes_;
  bytes_.clear();
  return frame;
}

bool token_frame::read(std::string_view frame) {
  jobs.clear();
  tokens.clear();
  logprobs.clear();
  const auto kind = kind_of(frame);
  if (kind != frame_kind::tokens && kind != frame_kind::logprobs) return false;
  with_logprobs = kind == frame_kind::logprobs;
  byte_reader from(body_of(frame));
  from(worker);
  from(serial);
  const std::size_t n = from.count(least_job_bytes);
  for (std::size_t i = 0; i < n && !from.failed(); ++i) read_job(from);
  return !from.failed() && is_name(worker);
}

void token_frame::read_job(byte_reader& from) {
  job_news& j = jobs.emplace_back();
  from(j.slot);
  from(j.attempt);
  from(j.ended);
  from(j.from);
  j.begin = static_cast<std::uint32_t>(tokens.size());
  const std::size_t n = from.count(least_token_bytes, most_frame_tokens);
  std::int64_t before_us = 0;
  for (std::size_t i = 0; i < n && !from.failed(); ++i) read_token(from, before_us);
  j.end = static_cast<std::uint32_t>(tokens.size());
  if (j.from > std::numeric_limits<std::uint32_t>::max() - n) from.fail();
  if (!j.ended || from.failed()) return;
  ending_fields(from, j.how, time_point());
  bool fault = false;
  from(fault);
  if (fault) read_error(from, j.how.fault.emplace());
}

void token_frame::read_token(byte_reader& from, std::int64_t& before_us) {
  token& t = tokens.emplace_back();
  t.id = from.token();
  duration since{};
  from(since);
  before_us += us(since);
  if (before_us > longest_us || before_us < -longest_us) return from.fail();
  t.at = time_point(std::chrono::microseconds(before_us));
  if (!with_logprobs) return;
  draw_logprobs& l = logprobs.emplace_back();
  l.drawn.id = t.id;
  read_logprobs(from, l);
}

}  // namespace weir::core::fleet
