#include "weir/engine.hpp"

#include <boost/asio/error.hpp>
#include <algorithm>
#include <cassert>

#include "actors/open_model.h"
#include "core/model/kv_choice.h"
#include "core/model/load.h"
#include "net/embed/engine_state.h"

namespace weir {
namespace {

namespace asio = boost::asio;
using phase = actors::job_stream::phase;

static_assert(engine_options{}.max_batch == core::device_settings{}.max_batch);
static_assert(engine_options{}.queue == core::queue_settings{}.queue);

// Throws engine_error for a number that is outside the range of its setting.
template <class S>
void check_ranges(S& settings) {
  core::visit_settings(settings, [](const core::setting& s, const auto& field) {
    const auto n = core::number_of(s, field);
    if (!s.has_range() || (n >= s.low && n <= s.high)) return;
    std::string name = s.name;
    std::ranges::replace(name, '-', '_');
    throw engine_error(name, fmt::format("{}: must be {} to {}", name, s.low, s.high));
  });
}

actors::service_options options_of(const engine_options& o) {
  actors::service_options s;
  const bool sim = o.device == "sim" || o.device.starts_with("sim:");
  const bool cuda = o.device == "cuda" || o.device.starts_with("cuda:");
  if (!sim && !cuda && o.device != "cpu" && o.device != "reference")
    throw engine_error("device",
                       "device: '" + o.device + "' is not one of cpu, reference, cuda[:N], sim[:K=V,...]");
  if (sim != o.model.empty())
    throw engine_error("model",
                       sim ? "model: the simulated device has its own" : "model: has to name a directory");
  if (sim) {
    s.models.push_back({"sim", o.device});
  } else {
    s.models.push_back({actors::name_of_source(o.model), o.model});
  }
  s.owner.device = sim ? "sim" : o.device;
  const auto kv = core::parse_kv_type(o.kv_type);
  if (!kv)
    throw engine_error("kv_type", "kv_type: must be " + core::kv_type_names() + ", not '" + o.kv_type + "'");
  s.owner.kv = *kv;
  const auto activations = core::parse_activations(o.activations);
  if (!activations)
    throw engine_error("activations", "activations: must be f32 or int8, not '" + o.activations + "'");
  if (!core::check_activations(o.device, *activations))
    throw engine_error("activations", "activations: only the device cpu has " + o.activations);
  s.owner.activations = *activations;
  s.owner.threads = o.threads;
  s.owner.kv_tokens = o.kv_tokens;
  s.owner.max_batch = o.max_batch;
  s.owner.max_seq_len = o.max_seq_len;
  check_ranges<core::device_settings>(s.owner);
  core::queue_settings& queue = s.owner;
  queue.queue = o.queue;
  check_ranges(queue);
  queue = core::queue_of(o.queue);
  return s;
}

std::optional<core::grammar::constraint_text> constraint_of(constraint c) {
  using to = core::grammar::constraint_text::kind;
  if (c.what == constraint::kind::none) return std::nullopt;
  core::grammar::constraint_text out;
  switch (c.what) {
    case constraint::kind::json_schema: out.what = to::json_schema; break;
    case constraint::kind::regex: out.what = to::regex; break;
    case constraint::kind::choice: out.what = to::choice; break;
    case constraint::kind::grammar: out.what = to::grammar; break;
    default: out.what = to::json_object;
  }
  out.text = std::move(c.text);
  out.choices = std::move(c.choices);
  out.strict = c.strict;
  return out;
}

actors::request request_of(request r) {
  actors::request out;
  out.input_param = "prompt";
  if (!r.ids.empty()) {
    out.input = std::move(r.ids);
    out.input_param = "ids";
  } else if (!r.messages.empty()) {
    core::conversation said;
    for (const auto& m : r.messages)
      said.messages.push_back(boost::json::object{{"role", m.role}, {"content", m.content}});
    out.input = std::move(said);
    out.input_param = "messages";
  } else {
    out.input = std::move(r.prompt);
  }
  out.max_tokens = r.max_tokens;
  out.min_tokens = r.min_tokens;
  out.sampling = {.temperature = r.temperature,
                  .top_k = r.top_k,
                  .top_p = r.top_p,
                  .min_p = r.min_p,
                  .repetition_penalty = r.repetition_penalty,
                  .frequency_penalty = r.frequency_penalty,
                  .presence_penalty = r.presence_penalty,
                  .seed = r.seed,
                  .logit_bias = {},
                  .repetition_range = r.repetition_range,
                  .repetition_decay = r.repetition_decay,
                  .top_n_sigma = r.top_n_sigma,
                  .top_a = r.top_a,
                  .typical_p = r.typical_p,
                  .tfs = r.tfs,
                  .xtc_probability = r.xtc_probability,
                  .xtc_threshold = r.xtc_threshold,
                  .dynatemp_range = r.dynatemp_range,
                  .dynatemp_exponent = r.dynatemp_exponent,
                  .smoothing_factor = r.smoothing_factor,
                  .smoothing_curve = r.smoothing_curve,
                  .temperature_last = r.temperature_last,
                  .disallow_tokens = std::move(r.disallow_tokens),
                  .allowed_token_ids = std::move(r.allowed_token_ids),
                  .no_repeat_ngram_size = r.no_repeat_ngram_size,
                  .bad_words = {r.bad_words.begin(), r.bad_words.end()},
                  .dry_multiplier = r.dry_multiplier,
                  .dry_base = r.dry_base,
                  .dry_allowed_length = r.dry_allowed_length,
                  .dry_range = r.dry_range,
                  .dry_sequence_breakers = std::move(r.dry_sequence_breakers),
                  .mirostat_mode = r.mirostat_mode,
                  .mirostat_tau = r.mirostat_tau,
                  .mirostat_eta = r.mirostat_eta};
  out.stop = std::move(r.stop);
  out.banned_strings = std::move(r.banned_strings);
  out.ignore_eos = r.ignore_eos;
  out.constraint = constraint_of(std::move(r.answer));
  out.constraint_param = "answer";
  out.priority = r.priority;
  out.deadline = r.deadline;
  return out;
}

}  // namespace

// --- weir::job: a cursor into the log of a job_stream

struct job::state {
  explicit state(const std::shared_ptr<engine::state>& e) : ex(e->ex), by(e) { e->jobs.insert(this); }
  ~state() {
    if (const auto e = by.lock()) e->jobs.erase(this);
  }

  bool over() const {
    return abandoned || stream->state() == phase::done || stream->state() == phase::refused;
  }

  // The engine is being destroyed: ends the pending read, for which no more tokens will come.
  void abandon() {
    abandoned = true;
    news();
  }

  // Completes the pending read if there are tokens for it, or if the job has ended.
  void news() {
    if (!handler) return;
    std::size_t n = 0;
    for (; n < into.size() && next < stream->published(); ++n, ++next)
      into[n] = {stream->token_at(next), next, std::chrono::microseconds(stream->sampled_at_us(next))};
    if (n == 0 && !into.empty()) {
      if (!over()) return;
      how = ending_of();
      return handler.post(asio::error::eof, 0);
    }
    handler.post({}, n);
  }

  ending ending_of() const {
    if (stream->state() == phase::refused) return {"refused", stream->refusal().message};
    if (stream->state() != phase::done) return {"error", "the engine is gone"};
    const auto& o = stream->ended();
    return {core::name(o.reason),
            o.fault ? o.fault->message : "",
            o.input_tokens,
            o.output_tokens,
            o.ttft_ms,
            o.decode_ms,
            o.max_gap_ms};
  }

  const asio::any_io_executor ex;
  const std::weak_ptr<engine::state> by;
  bool abandoned = false;
  std::shared_ptr<actors::job_stream> stream;
  std::string id;
  std::uint32_t next = 0;  // index of the next token to be read
  waiting handler;
  std::span<token> into;
  std::uint64_t reads = 0;
  std::optional<ending> how;
};

job::job(std::shared_ptr<state> s) noexcept : state_(std::move(s)) {}

job::~job() {
  if (state_ && state_->handler) state_->handler.post(asio::error::operation_aborted, 0);
}

job& job::operator=(job&& other) noexcept {
  job old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

job::executor_type job::get_executor() const noexcept { return state_->ex; }
const std::string& job::id() const noexcept { return state_->id; }
const asio::any_io_executor& job::executor_of(const state& s) { return s.ex; }

std::uint64_t job::read(state& s, waiting handler, std::span<token> into) {
  assert(!s.handler && "one async_read_some at a time");
  s.handler = std::move(handler);
  s.into = into;
  const auto number = ++s.reads;
  s.news();
  return number;
}

void job::cancel_read(state& s, std::uint64_t number) {
  if (s.handler && s.reads == number) s.handler.post(asio::error::operation_aborted, 0);
}

std::string job::text(std::span<const token> tokens) const {
  std::string out;
  if (!tokens.empty()) state_->stream->text_of(tokens.front().index, tokens.back().index + 1, out);
  return out;
}

void job::cancel() { state_->stream->cancel(); }

const ending& job::ended() const {
  assert(state_->how && "not before eof");
  return *state_->how;
}

// --- the engine

engine::engine(asio::any_io_executor yours, engine_options o)
    : state_(std::make_shared<state>(std::move(yours), options_of(o))) {}

engine::~engine() {
  for (job::state* j : state_->jobs) j->abandon();
  if (!state_->handler) return;
  const auto gone = boost::system::system_error(asio::error::operation_aborted);
  state_->handler.post(std::make_exception_ptr(gone));
}

engine::executor_type engine::get_executor() const noexcept { return state_->ex; }

void engine::load(loading handler) {
  assert(!state_->handler && "loaded once");
  state_->handler = std::move(handler);
  state_->service.load({}, state_->ex, [weak = std::weak_ptr(state_)](const core::result<>& r) {
    const auto s = weak.lock();
    if (!s || !s->handler) return;
    s->handler.post(r ? nullptr : std::make_exception_ptr(to_exception(r.error())));
  });
}

job engine::submit(request r) {
  auto s = std::make_shared<job::state>(state_);
  s->stream = state_->service.submit(request_of(std::move(r)), state_->ex, [weak = std::weak_ptr(s)] {
    if (auto alive = weak.lock()) alive->news();
  });
  s->id = s->stream->id().text();
  return job(std::move(s));
}

}  // namespace weir
