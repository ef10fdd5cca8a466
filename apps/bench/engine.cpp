// `weir bench engine`: runs a whole model, with random weights or from files, on the engine, without sockets.
// It measures tokens a second in decode and prefill, and beside them the limits of the device: the time to
// read the weights once, and the rate of multiplications.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "actors/mask_pool.h"
#include "apps/bench/bench.h"
#include "apps/bench/profile.h"
#include "apps/bench/spelled_words.h"
#include "core/engine.h"
#include "core/grammar/compile.h"
#include "core/grammar/constraint.h"
#include "core/model/decoder_model.h"
#include "core/model/load.h"
#include "core/text/tokenizer/tokenizer.h"
#include "kernels/cuda/backend.h"

namespace weir::apps::bench {
namespace {

struct engine_options {
  device_options on;
  std::string shape = "tiny-110m", type = "bf16", model;
  std::string kv_type = "auto";
  std::uint32_t batch = 1, context = 128, tokens = 128, prefill = 512, slice = 0, repeat = 3;
  std::string loop = "overlapped";
  bool kernels = false;
  bool constrained = false;
  std::uint32_t forced = 0;
};

struct nobody final : core::token_sink {
  std::size_t write(std::span<const core::token> tokens) override { return tokens.size(); }
  void finish(const core::ending& how) override { failed |= how.reason == core::finish_reason::error; }
  bool abandoned() const noexcept override { return false; }
  bool failed = false;
};

// The model that the options name. `longest`: most tokens of a sequence.
core::result<core::loaded_model> open_model(const engine_options& o, core::kv_choice kv,
                                            std::shared_ptr<const kernels::backend> backend,
                                            std::uint32_t longest) {
  if (o.model.empty()) {
    const auto shape = core::parse_random_model(o.shape + ":" + o.type, longest);
    if (!shape) return shape.error();
    return core::make_random_model(*shape, std::move(backend), 1, kv);
  }
  auto loaded = core::load_model(o.model, std::move(backend), {}, kv);
  if (!loaded) return loaded.error();
  if (const std::uint32_t most = loaded->weights->info().context; most < longest)
    return core::bad_param("context", "{} has a context of {} tokens, and this run needs {}", o.model, most,
                           longest);
  return loaded;
}

// An engine with a model. Jobs have random prompts that are all different, so that they share no prefix.
class rig {
 public:
  rig(const engine_options& o, std::shared_ptr<const kernels::backend> backend)
      : backend_(std::move(backend)), sink_(std::make_shared<nobody>()) {
    config_.max_batch = o.batch;
    config_.prefill_rows = o.slice;
    config_.run_ahead = o.loop == "overlapped";
    constrained_ = o.constrained;
    forced_ = o.forced;
  }

  core::result<> open(const engine_options& o, core::kv_choice kv, std::uint32_t longest,
                      std::uint64_t pages) {
    auto loaded = open_model(o, kv, backend_, longest);
    if (!loaded) return loaded.error();
    const auto& model = static_cast<const core::decoder_model&>(*loaded->weights);
    weights_ = model.weights_of_a_step().first(model.bytes_of_a_step(o.batch));
    shape_ = model.config();
    type_ = model.linear_type();
    config_.kv_pages = static_cast<std::uint32_t>(pages);
    if (config_.prefill_rows == 0) config_.prefill_rows = loaded->weights->info().prompt_rows;
    if (auto ok = loaded->weights->allocate_pages(config_.kv_pages); !ok) return ok;
    if (auto ok = loaded->weights->warm_up(config_.max_batch, config_.prefill_rows); !ok) return ok;
    const std::shared_ptr<const core::tokenizer> words = std::make_shared<spelled_words>(shape_.shape.vocab);
    if (constrained_) make_constraints(words);
    auto helpers = constrained_ ? std::make_shared<actors::mask_pool>(1, config_.max_batch) : nullptr;
    engine_ = std::make_unique<core::engine>(std::move(loaded->weights), core::token_table(*words), config_,
                                             clock_, std::move(helpers));
    return {};
  }

  // Makes 64 constraints with different masks. Each allows the words whose last digit is one of some digits;
  // behind such a word follow words that are always the same.
  void make_constraints(const std::shared_ptr<const core::tokenizer>& words) {
    using namespace core::grammar;
    const auto views = std::make_shared<terminal_views>(std::make_shared<const token_trie>(words));
    for (unsigned i = 0; i < 64; ++i) {
      std::string digits;
      for (unsigned d = 0; d < 10; ++d)
        if ((i * 37 + 5) >> d & 1 || d == i % 10) digits += static_cast<char>('0' + d);
      std::string expression = "(w[0-9]*[";
      expression.append(digits).append("] ");
      for (unsigned n = 0; n < forced_; ++n) expression.append(words->token_bytes(1000 + n));
      auto rules = compile_regex(expression.append(")*"));
      constraints_.push_back(constraint::make(std::move(rules).value(), views).value());
    }
  }

  std::vector<core::token_id> random_prompt(std::uint32_t tokens) {
    std::uniform_int_distribution<core::token_id> any(0, static_cast<core::token_id>(shape_.shape.vocab) - 1);
    std::vector<core::token_id> prompt(tokens);
    for (auto& id : prompt) id = any(random_);
    return prompt;
  }

  void submit(std::vector<core::token_id> prompt, std::uint32_t tokens) {
    core::job j;
    j.id = {1, ++jobs_};
    j.prompt = std::move(prompt);
    j.sampling.temperature = 0;
    j.max_tokens = tokens;
    j.ignore_eos = true;
    j.created = clock_.now();
    j.sink = sink_;
    if (constrained_) j.constraint = constraints_[jobs_ % constraints_.size()];
    engine_->submit(std::move(j));
  }

  // Runs one step; returns its time in seconds.
  double step() {
    return seconds_of([&] { last_ = engine_->step(); });
  }
  // Cancels all jobs, and runs the engine until it is idle.
  void stop() {
    for (; stopped_ < jobs_;) engine_->cancel({1, ++stopped_});
    while (!engine_->idle()) engine_->step();
  }

  const core::step_report& last() const { return last_; }
  // Whether steps overlap: the options ask for it, and the model can run ahead.
  bool overlaps() const { return config_.run_ahead && engine_->info().runs_ahead; }
  bool idle() const { return engine_->idle(); }
  core::engine_counts counts() const { return engine_->counts(); }
  // A job or the device has failed, or jobs that should run together have ended too early.
  bool failed() const { return sink_->failed || engine_->fault() || (stopped_ < jobs_ && engine_->idle()); }
  const core::model_config& shape() const { return shape_; }
  kernels::dtype type() const { return type_; }
  std::span<const std::byte> weights() const { return weights_; }
  // How a CUDA device is doing; read while it is still warm from the steps that were timed.
  kernels::device_state state() const { return kernels::state_of(*backend_); }
  std::string_view kv_type() const { return engine_->info().kv_type; }
  bool on_host() const { return backend_->on_host; }
  double read() const {
    return seconds_of([&] { backend_->do_read(backend_->self, weights_.data(), weights_.size()); });
  }

 private:
  core::model_config shape_;
  kernels::dtype type_ = kernels::dtype::bf16;
  std::shared_ptr<const kernels::backend> backend_;
  std::shared_ptr<nobody> sink_;
  core::system_clock clock_;
  core::engine_config config_;
  std::span<const std::byte> weights_;  // as many bytes as a step reads
  bool constrained_ = false;
  std::uint32_t forced_ = 0;
  std::vector<std::shared_ptr<core::grammar::constraint>> constraints_;
  std::unique_ptr<core::engine> engine_;
  core::step_report last_;
  std::uint64_t jobs_ = 0, stopped_ = 0;
  std::mt19937 random_{1};
};

double median(std::vector<double> v) { return percentile(v, 0.5); }

// Most tokens of an answer: those that are timed, and those before all jobs of the batch decode.
std::uint32_t longest_output(const engine_options& o) { return o.tokens + 16 + o.batch / 32; }

// Measures steps in which all jobs of the batch decode. In between it measures reads of the weights.
boost::json::object decode(rig& r, const engine_options& o, profile* kernels) {
  std::vector<double> steps, reads, rates, host;
  kernels::device_state state;
  std::vector<std::vector<core::token_id>> prompts;
  for (std::uint32_t i = 0; i < o.batch; ++i) prompts.push_back(r.random_prompt(o.context));
  for (std::uint32_t round = 0; round < o.repeat; ++round) {
    for (int i = 0; i < 3; ++i) reads.push_back(r.read());
    // The prompts are computed into the prefix cache first. Otherwise the first job of the batch would have a
    // longer context than the last when all of them decode.
    for (const auto& p : prompts) {
      r.submit(p, 1);
      while (!r.idle() && !r.failed()) r.step();
    }
    for (const auto& p : prompts) r.submit(p, longest_output(o));
    // Runs until a step without prompt rows has ended. With overlapping steps, the device may still compute
    // the last slice of a prompt when all jobs count as decoding.
    while ((r.counts().decoding < o.batch || r.last().rows != o.batch) && !r.failed()) r.step();
    // Some more steps, so that the first step that is timed has begun after all jobs were admitted.
    for (int i = 0; i < 4 && !r.failed(); ++i) r.step();
    if (kernels) kernels->clear();
    double all = 0;
    for (std::uint32_t i = 0; i < o.tokens && !r.failed(); ++i) {
      steps.push_back(r.step());
      all += steps.back();
      host.push_back(steps.back() - std::chrono::duration<double>(r.last().waited).count());
    }
    if (!r.on_host()) state = r.state();
    r.stop();
    rates.push_back(double(o.tokens) * o.batch / all);
  }
  const double step = median(steps), read = median(reads);
  const auto bytes = static_cast<double>(r.weights().size());
  boost::json::object out{{"tokens_per_s", median(rates)},
                          {"step_ms", {{"p50", step * 1e3}, {"p99", percentile(steps, 0.99) * 1e3}}},
                          {"weight_bytes", r.weights().size()},
                          {"read_limit_gb_per_s", bytes / read * 1e-9},
                          {"limit_tokens_per_s", o.batch / read},
                          {"share_of_read_limit", read / step},
                          {"loop", r.overlaps() ? "overlapped" : "plain"}};
  if (r.overlaps()) out["host_us"] = {{"p50", median(host) * 1e6}, {"p99", percentile(host, 0.99) * 1e6}};
  if (o.constrained) out["late_masks"] = r.counts().late_masks;
  if (o.constrained) out["forced_tokens"] = r.counts().forced_tokens;
  if (!r.on_host()) out["device"] = figures_of(state);
  if (kernels) out["operations"] = kernels->figures();
  return out;
}

// Floating-point operations for one row of a prompt: two for each weight of all layers, of its experts alone.
// The matrix of the logits does not count, since only the last row of a prompt needs it.
double flops_of_a_row(const core::model_config& c) {
  double weights = 0;
  for (const kernels::layer_shape& l : c.shape.layers)
    weights += double(l.mixer.width()) + l.mixer.q_width() + l.mlp.shared_width() + l.mlp.shared +
               double(l.mlp.slots()) * (l.mlp.width() + l.mlp.inter) +
               (l.mlp.is_mixture() ? l.mlp.router_rows() : 0);
  return 2 * weights * c.shape.hidden;
}

// Measures prompts, one at a time, from the first row to the first token.
boost::json::object prefill(rig& r, const engine_options& o, const kernels::backend& backend,
                            profile* kernels) {
  std::vector<double> times, peaks;
  // Measured before the rounds, not between them, since it allocates and frees memory, for which a device
  // waits.
  for (std::uint32_t round = 0; round < o.repeat; ++round)
    peaks.push_back(backend.peak_flops(backend.self, r.type()));
  for (std::uint32_t round = 0; round <= o.repeat; ++round) {
    if (kernels) kernels->clear();
    r.submit(r.random_prompt(o.prefill), 1);
    double all = 0;
    while (!r.idle()) all += r.step();
    r.stop();
    if (round > 0) times.push_back(all);  // the first round is a warm-up
  }
  const kernels::device_state state = r.on_host() ? kernels::device_state{} : r.state();
  const double peak = median(peaks), rate = o.prefill / median(times);
  const double flops = rate * flops_of_a_row(r.shape());
  boost::json::object out{{"tokens", o.prefill},
                          {"tokens_per_s", rate},
                          {"flops_per_s", flops},
                          {"peak_flops_per_s", peak},
                          {"share_of_peak", peak > 0 ? flops / peak : 0}};
  if (!r.on_host()) out["device"] = figures_of(state);
  if (kernels) out["operations"] = kernels->figures();
  return out;
}

core::result<boost::json::object> measure(const engine_options& o) {
  auto backend = open(o.on);
  if (!backend) return backend.error();
  const std::uint32_t one = o.context + longest_output(o), longest = std::max(one, o.prefill + 1);
  const auto kv = core::parse_kv_type(o.kv_type);
  if (!kv) return kv.error();
  if (o.kernels && !(*backend)->on_host)
    return core::bad_param("kernels",
                           "--kernels: {} goes on while an operation runs; a profiler of its own sees more",
                           (*backend)->name);
  std::optional<profile> timed;
  if (o.kernels) timed.emplace(*backend);
  rig r(o, timed ? timed->table() : *backend);
  const auto pages = std::max(o.batch * (core::pages_for(one) + 2), core::pages_for(longest) + 1);
  if (auto ok = r.open(o, *kv, longest, pages); !ok) return ok.error();
  boost::json::object out{{"benchmark", "engine"}, {"backend", std::string((*backend)->name)}};
  if (o.model.empty())
    out.insert({{"shape", o.shape}, {"dtype", o.type}});
  else
    out["model"] = o.model;
  out.insert({{"kv_type", std::string(r.kv_type())}, {"batch", o.batch}, {"context", o.context}});
  if (o.tokens > 0) out["decode"] = decode(r, o, timed ? &*timed : nullptr);
  if (o.prefill > 0) out["prefill"] = prefill(r, o, **backend, timed ? &*timed : nullptr);
  if (r.failed())
    return core::make_error(core::errc::internal, "a job failed; the figures would mean nothing");
  return out;
}

int run(const engine_options& o) { return report(measure(o), o.on.json); }

}  // namespace

command add_engine(CLI::App& app) {
  auto o = std::make_shared<engine_options>();
  add_options(app, o->on);
  auto* shape = app.add_option("--shape", o->shape, core::random_model_names());
  auto* type =
      app.add_option("--dtype", o->type, "of the weights: f32, bf16, f16, or quantised: q8_0, q4_k, ...");
  app.add_option("--model", o->model, "a directory or a GGUF file, in place of random weights")
      ->excludes(shape->capture_default_str())
      ->excludes(type->capture_default_str());
  app.add_option("--kv-type", o->kv_type,
                 "of keys and values: auto, f32, bf16, fp8 or q8, as `weir serve` has it")
      ->capture_default_str();
  app.add_option("--batch", o->batch, "sequences that decode at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--context", o->context, "tokens before the first that is timed")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--tokens", o->tokens, "that each sequence decodes; 0: no decoding")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--prefill", o->prefill, "tokens of the prompt that is timed; 0: none")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--slice", o->slice, "most prompt rows in a step; 0: the engine's own")
      ->capture_default_str();
  app.add_option("--repeat", o->repeat, "rounds, of which medians are told")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--loop", o->loop,
                 "overlapped: a step is begun while the one before it runs, where the model can; or plain")
      ->capture_default_str()
      ->check(CLI::IsMember({"overlapped", "plain"}));
  app.add_flag("--constrained", o->constrained,
               "each job has one of 64 constraints: what masks cost beside the same run without");
  app.add_option("--forced", o->forced, "with --constrained: words behind each drawn one that are not drawn")
      ->capture_default_str()
      ->check(CLI::Range(0, 100));
  app.add_flag("--kernels", o->kernels, "time each operation too: where the last round's steps went");
  return [o] { return run(*o); };
}

}  // namespace weir::apps::bench
