#include "net/http/kept_answer.h"

#include <utility>

#include "core/fleet/bytes.h"
#include "core/fleet/job_frame.h"
#include "net/http/answer_encoders.h"

namespace weir::net {
namespace {

using core::fleet::byte_reader;
using core::fleet::byte_writer;

constexpr std::size_t most_warnings = 4096, most_names = 4096;

template <class IO, class List>
void warnings_field(IO& io, List& all) {
  io.list(all, most_warnings, [&](auto& w) {
    io(w.where);
    io(w.message);
  });
}

// The fields that have these names are constants of the protocol, and travel as one text.
void reasoning_field(byte_writer& io, const openai_encoder& e) {
  std::string names;
  for (const auto name : e.reasoning) names.append(names.empty() ? "" : ",").append(name);
  io(names);
}
void reasoning_field(byte_reader& io, openai_encoder& e) {
  auto known = openai::reasoning_fields(io.text());
  if (!known) return io.fail();
  e.reasoning = std::move(*known);
}

template <class IO, class E>
void openai_fields(IO& io, E& e) {
  io.one_of(e.dialect, openai::dialect::chat);
  reasoning_field(io, e);
  for (auto* flag : {&e.with_ids, &e.include_usage, &e.prompt_logprobs, &e.prompt_alone}) io(*flag);
  io(e.scores);
  io(e.n);
  io(e.created_s);
  io(e.model);
  warnings_field(io, e.ignored);
}

template <class IO, class E>
void anthropic_fields(IO& io, E& e) {
  io(e.asked.max_tokens);
  io.list(e.asked.stop_sequences, SIZE_MAX, [&](auto& s) { io(s); });
  io(e.model);
  io(e.request_id);
  warnings_field(io, e.ignored);
}

template <class IO, class T>
void terms_fields(IO& io, T& t) {
  io(t.created_s);
  io(t.model);
  io(t.echo);
  io.list(t.names, most_names, [&](auto& n) {
    for (auto* s : {&n.flat, &n.space, &n.name}) io(*s);
  });
  warnings_field(io, t.ignored);
  io(t.stored);
  io(t.items);
  io(t.previous);
}

enum class protocol : std::uint8_t { openai, anthropic, responses };

struct writer {
  byte_writer& to;
  void operator()(const openai_encoder& e) const {
    to.one_of(protocol::openai, protocol::responses);
    openai_fields(to, e);
  }
  void operator()(const anthropic_encoder& e) const {
    to.one_of(protocol::anthropic, protocol::responses);
    anthropic_fields(to, e);
  }
  void operator()(const responses_encoder& e) const {
    to.one_of(protocol::responses, protocol::responses);
    terms_fields(to, *e.terms);
  }
};

std::size_t longest_text_of(const kept_answer& a) {
  const auto terms = terms_of(a);
  return terms ? terms->items.size() + terms->echo.size() : 0;
}

}  // namespace

std::span<const core::job_id> jobs_of(const kept_answer& a) { return a.jobs; }

terms_ptr terms_of(const kept_answer& a) {
  const auto* of = std::get_if<responses_encoder>(&a.encoder);
  return of ? of->terms : nullptr;
}

std::shared_ptr<const kept_answer> kept_answer_of(terms_ptr terms, const core::job_id& job) {
  responses_encoder encoder;
  encoder.terms = std::move(terms);
  return std::make_shared<kept_answer>(kept_answer{std::move(encoder), {job}});
}

bool is_response(const kept_answer& a) { return terms_of(a) != nullptr; }

std::shared_ptr<const std::string> bytes_of(const kept_answer& a) {
  if (longest_text_of(a) > core::fleet::longest_resume) return nullptr;
  auto out = std::make_shared<std::string>();
  byte_writer to(*out);
  std::visit(writer{to}, a.encoder);
  return out;
}

std::shared_ptr<const kept_answer> read_answer(std::string_view bytes, std::vector<core::job_id> jobs,
                                               const actors::principal& owner,
                                               std::shared_ptr<core::memory_account> account) {
  byte_reader from(bytes);
  protocol which{};
  from.one_of(which, protocol::responses);
  kept_answer out{openai_encoder(), std::move(jobs)};
  switch (which) {
    case protocol::openai:
      openai_fields(from, std::get<openai_encoder>(out.encoder));
      break;
    case protocol::anthropic:
      anthropic_fields(from, out.encoder.emplace<anthropic_encoder>());
      break;
    case protocol::responses: {
      auto terms = std::make_shared<response_terms>();
      terms_fields(from, *terms);
      terms->owner = owner;
      terms->memory = core::memory_hold(std::move(account));
      terms->memory.force(bytes.size());
      out.encoder.emplace<responses_encoder>().terms = std::move(terms);
      break;
    }
  }
  if (from.failed() || out.jobs.empty()) return nullptr;
  return std::make_shared<const kept_answer>(std::move(out));
}

}  // namespace weir::net
