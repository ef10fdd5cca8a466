#include "core/fleet/job_frame.h"

#include <algorithm>

#include "core/fleet/bytes.h"
#include "core/fleet/constraint_bytes.h"
#include "core/fleet/frame_kind.h"
#include "core/fleet/sampling_bytes.h"
#include "core/grammar/compile.h"
#include "core/job_limits.h"
#include "core/sample/logprobs.h"

namespace weir::core::fleet {
namespace {

constexpr std::size_t longest_salt = longest_cache_salt + 64;  // with the key's part (actors/make_job.h)
constexpr std::size_t part_head = 64;                          // more than what stands before a part's bytes

error cut() { return bad_param("job", "the frame of a job is cut or has a value that it may not have"); }

template <class List>
void write_tokens(byte_writer& to, const List& ids) {
  to.list(ids, 0, [&](token_id id) { to.varint(static_cast<std::uint64_t>(id)); });
}

std::vector<token_id> read_tokens(byte_reader& from) {
  std::vector<token_id> ids;
  const std::size_t n = from.count(1);
  ids.reserve(n);
  for (std::size_t i = 0; i < n && !from.failed(); ++i) ids.push_back(from.token());
  return ids;
}

void write_times(byte_writer& to, const core::job& j, time_point now) {
  to(duration(now - j.created));
  to(j.deadline ? std::optional<duration>(*j.deadline - now) : std::nullopt);
}

void read_times(byte_reader& from, core::job& j, time_point now) {
  duration age{};
  std::optional<duration> left;
  from(age);
  from(left);
  j.created = now - std::max(age, duration());
  if (left) j.deadline = now + *left;
}

// The fields that are spelled alike in both directions.
template <class IO, class Order>
void head_fields(IO& io, Order& o) {
  io(o.job.id);
  io(o.attempt);
  io(o.gateway);
  io(o.slot);
  io(o.model);
  io(o.engine);
  io(o.may_pause);
  io(o.arithmetic);
}

template <class IO, class Job>
void plain_fields(IO& io, Job& j) {
  io(j.max_tokens);
  io(j.min_tokens);
  io(j.max_repeats);
  io(j.shifts);
  io(j.kept);
  io(j.ignore_eos);
  io(j.shows_stop);
  io(j.top_logprobs);
  io(j.prompt_logprobs);
  io.one_of(j.force, grammar::forcing::off);
  io(j.cache_salt);
  io(j.priority);
  io(j.key);
}

void write_body(byte_writer& to, const job_order& o, time_point now) {
  const core::job& j = o.job;
  head_fields(to, o);
  write_times(to, j, now);
  plain_fields(to, j);
  write_tokens(to, j.stop_token_ids);
  for (const auto* strings : {&j.stop, &j.banned})
    to.list(strings->texts(), 0, [&](const std::string& s) { to(s); });
  to(j.healing ? std::optional(j.healing->token) : std::nullopt);
  to(j.constraint_source != nullptr);
  if (j.constraint_source) write_constraint(to, *j.constraint_source);
  std::string sampling;
  byte_writer inside(sampling);
  write_sampling(inside, j.sampling);
  to.text(sampling);
  write_tokens(to, j.prompt);
  write_tokens(to, j.spoken);
  to(o.resume);  // earlier builds neither write nor read it, nor what follows
  to(o.user);
  to(o.answer);
  to(o.stay);
}

result<stop_strings> read_strings(byte_reader& from, std::size_t most, std::size_t most_bytes) {
  std::vector<std::string> all;
  from.list(all, most, [&](std::string& s) { from(s); });
  std::size_t bytes = 0;
  for (const std::string& s : all) {
    if (s.empty() || s.size() > longest_stop_string) return cut();
    bytes += s.size();
  }
  if (from.failed() || bytes > most_bytes) return cut();
  return stop_strings(all);
}

result<void> read_lists(byte_reader& from, core::job& j) {
  const auto ids = read_tokens(from);
  if (ids.size() > 2 * most_listed_tokens) return cut();  // with the model's own
  j.stop_token_ids = token_set(ids);
  auto stop = read_strings(from, most_stop_strings, most_stop_strings * longest_stop_string);
  if (!stop) return stop.error();
  j.stop = std::move(*stop);
  auto banned = read_strings(from, most_banned_strings, most_banned_bytes);
  if (!banned) return banned.error();
  j.banned = std::move(*banned);
  std::optional<token_id> healed;
  from(healed);
  if (!healed) return {};
  auto h = std::make_shared<healing>();
  h->token = *healed;
  j.healing = std::move(h);
  return *healed < 0 ? result<void>(cut()) : result<void>();
}

result<void> read_rules(byte_reader& from, core::job& j) {
  bool constrained = false;
  from(constrained);
  if (constrained) {
    j.constraint_source = read_constraint(from);
    if (!j.constraint_source) return cut();
  }
  byte_reader sampling(from.text());
  if (from.failed()) return cut();
  return read_sampling(sampling, j.sampling);
}

// The rules between fields, as requests are held to them.
result<void> check(const job_order& o) {
  const core::job& j = o.job;
  const auto top = [](const std::optional<std::uint32_t>& n) { return !n || *n <= most_top_logprobs; };
  if (o.stay < duration()) return bad_param("keep_alive", "a model cannot stay for less than no time");
  if (!is_name(o.gateway)) return bad_param("gateway", "the gateway of a job has no name");
  if (j.prompt.empty()) return bad_param("prompt", "a job has no prompt");
  if (j.max_tokens == 0) return bad_param("max_tokens", "max_tokens is 0");
  if (j.min_tokens > j.max_tokens) return bad_param("min_tokens", "min_tokens is more than max_tokens");
  if (j.max_repeats == 1 || j.max_repeats > 1000)
    return bad_param("max_repeats", "max_repeats is out of its range");
  if (j.shifts && j.max_tokens > most_shifted_output)
    return bad_param("max_tokens", "max_tokens is too much for a job whose context shifts");
  if (j.kept > j.prompt.size()) return bad_param("kept", "more tokens are kept than the prompt has");
  if (!top(j.top_logprobs)) return bad_param("logprobs", "too many likeliest tokens are asked for");
  if (!top(j.prompt_logprobs)) return bad_param("prompt_logprobs", "too many likeliest tokens are asked for");
  if (j.shifts && j.prompt_logprobs)
    return bad_param("prompt_logprobs", "prompt_logprobs does not go with a context that shifts");
  if (j.cache_salt.size() > longest_salt) return bad_param("cache_salt", "cache_salt is too long");
  if (j.spoken.size() > j.max_tokens) return bad_param("spoken", "more tokens were spoken than max_tokens");
  return {};
}

}  // namespace

bool is_name(std::string_view s) {
  return s.size() == name_length &&
         std::ranges::all_of(s, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7'); });
}

result<std::vector<std::string>> job_frames(const job_order& o, time_point now, std::size_t longest) {
  std::string whole = begin_frame(frame_kind::job);
  byte_writer to(whole);
  write_body(to, o, now);
  std::vector<std::string> out;
  if (whole.size() <= longest) {
    out.push_back(std::move(whole));
    return out;
  }
  const std::string_view body = body_of(whole);
  const std::size_t each = longest - std::min(longest - 1, part_head);
  const std::size_t parts = (body.size() + each - 1) / each;
  if (parts > most_parts)
    return bad_param("prompt", "the job takes {} bytes, more than {} messages of {} bytes have room for",
                     body.size(), most_parts, longest);
  for (std::size_t i = 0; i < parts; ++i) {
    std::string& part = out.emplace_back(begin_frame(frame_kind::job_part));
    byte_writer p(part);
    p(o.job.id);
    p(o.attempt);
    p(static_cast<std::uint32_t>(i));
    p(static_cast<std::uint32_t>(parts));
    p.text(body.substr(i * each, each));
  }
  return out;
}

result<job_order> read_job(std::string_view body, time_point now) {
  byte_reader from(body);
  job_order o;
  head_fields(from, o);
  read_times(from, o.job, now);
  plain_fields(from, o.job);
  if (from.failed()) return cut();
  if (auto ok = read_lists(from, o.job); !ok) return ok.error();
  if (auto ok = read_rules(from, o.job); !ok) return ok.error();
  o.job.prompt = read_tokens(from);
  o.job.spoken = read_tokens(from);
  if (!from.at_end()) from(o.resume);
  o.answer = o.job.id;
  if (!from.at_end()) {
    from(o.user);
    from(o.answer);
  }
  if (!from.at_end()) from(o.stay);
  if (from.failed() || o.resume.size() > longest_resume) return cut();
  if (auto ok = check(o); !ok) return ok.error();
  return o;
}

result<job_part> read_job_part(std::string_view body) {
  byte_reader from(body);
  job_part p;
  from(p.id);
  from(p.attempt);
  from(p.part);
  from(p.of);
  p.bytes = from.text();
  if (from.failed() || p.of > most_parts || p.part >= p.of) return cut();
  return p;
}

}  // namespace weir::core::fleet
