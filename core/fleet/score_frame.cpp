#include "core/fleet/score_frame.h"

#include "core/fleet/logprob_bytes.h"

namespace weir::core::fleet {
namespace {

// Of a token without likeliest ones: a logprob, their number and a rank.
constexpr std::size_t least_score_bytes = 6;

template <class IO, class Frame>
void asked_fields(IO& io, Frame& f) {
  io(f.job.id);
  io(f.job.attempt);
  io(f.at);
}

}  // namespace

std::string frame_of(const score_wish& f) {
  std::string out = begin_frame(frame_kind::score_wish);
  byte_writer to(out);
  asked_fields(to, f);
  return out;
}

std::string score_part_of(const job_name& job, std::uint32_t at, std::uint32_t of,
                          std::span<const scored_token> all, std::size_t longest) {
  constexpr std::size_t head_bytes = 64;  // more than what stands before the tokens
  std::string tokens;
  std::uint32_t count = 0;
  byte_writer each(tokens);
  for (const scored_token& t : all) {
    const std::size_t before = tokens.size();
    write_logprobs(each, t.drawn.logprob, t.top());
    each(t.rank);
    if (count > 0 && head_bytes + tokens.size() > longest) {
      tokens.resize(before);
      break;
    }
    ++count;
  }
  std::string out = begin_frame(frame_kind::score_part);
  byte_writer to(out);
  const score_wish place{job, at};
  asked_fields(to, place);
  to(of);
  to(count);
  return out += tokens;
}

std::optional<score_wish> read_score_wish(std::string_view frame) {
  if (kind_of(frame) != frame_kind::score_wish) return std::nullopt;
  byte_reader from(body_of(frame));
  score_wish f;
  asked_fields(from, f);
  return from.failed() ? std::nullopt : std::optional(f);
}

std::optional<score_part> read_score_part(std::string_view frame) {
  if (kind_of(frame) != frame_kind::score_part || frame.size() > longest_score_part) return std::nullopt;
  byte_reader from(body_of(frame));
  score_part f;
  asked_fields(from, f);
  from(f.of);
  const std::size_t n = from.count(least_score_bytes);
  if (f.at > f.of || n > f.of - f.at) from.fail();
  for (std::size_t i = 0; i < n && !from.failed(); ++i) {
    scored_token& t = f.tokens.emplace_back();
    read_logprobs(from, t);
    from(t.rank);
  }
  return from.failed() ? std::nullopt : std::optional(std::move(f));
}

}  // namespace weir::core::fleet
