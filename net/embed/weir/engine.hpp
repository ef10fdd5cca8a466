// engine.hpp — a language model inside your own program: load it, give it requests, read tokens like a
// socket.
//
//   boost::asio::io_context io(1);
//   weir::engine engine(io.get_executor(), {.model = "models/rill"});
//   co_await engine.async_load();
//   weir::job story = engine.submit({.prompt = "Once upon a time", .max_tokens = 40});
//   std::array<weir::token, 16> t;
//   std::size_t n = co_await story.async_read_some(t);        // throws eof once the job has ended
//   std::cout << story.text(std::span(t).first(n));
//
// The model computes on threads of its own. All handlers run on your executor, which must run one handler at
// a time (an io_context run by one thread, or a strand). A loaded engine without jobs is not outstanding
// work.
//
// Thread safety: every member on that executor's thread, or before the executor runs.
//
// Invariants:
//   1. Every submitted job ends. Its reads give all its tokens in order, each once, and then eof; ended()
//      then says how the job ended.
//   2. Cancelling a read loses no tokens. Destroying a job cancels the job, and destroying the engine cancels
//      all its jobs.
//   3. The engine must be destroyed before its execution context. A job may outlive the engine; a job that
//      the engine could not finish ends with an error.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "weir/saved_handler.hpp"

namespace weir {

// An option or a file is wrong. what() is a sentence that names it.
class engine_error : public std::runtime_error {
 public:
  engine_error(std::string field, const std::string& message)
      : std::runtime_error(message), field_(std::move(field)) {}
  const std::string& field() const noexcept { return field_; }  // name of the option; may be empty

 private:
  std::string field_;
};

struct engine_options {
  std::string
      model;  // a directory in Hugging Face layout, a GGUF file, or random:SHAPE[:TYPE]; none with sim
  std::string device = "cpu";     // cpu, reference, cuda[:N], or sim[:K=V,...]
  unsigned threads = 0;           // threads that compute; 0: one for each core
  // The type in which keys and values are stored: one of --kv-type (docs/commands.md). The load fails where
  // the device does not have this type.
  std::string kv_type = "auto";
  // What quantised weights multiply: f32, or on cpu int8 (--activations in docs/commands.md).
  std::string activations = "f32";
  std::uint64_t kv_tokens = 0;    // KV memory for all sequences together; 0: as much as is reasonable
  std::uint32_t max_batch = 64;   // sequences that run at once
  std::uint32_t max_seq_len = 0;  // most tokens of prompt and answer together; 0: the model's own limit
  std::uint32_t queue = 256;      // jobs that may wait; one more is refused
};

struct chat_message {
  std::string role, content;
};

// What an answer may be; docs/structured.md says what is understood.
struct constraint {
  enum class kind { none, json_schema, json_object, regex, choice, grammar } what = kind::none;
  std::string text = {};                  // the JSON Schema, the expression, or the GBNF or Lark source
  std::vector<std::string> choices = {};  // for `choice`
  bool strict = false;  // refuse a schema of which a part cannot be enforced; false: do not enforce that part
};

// A field that is not set takes the model's default. A job is refused if a value is outside the range in
// docs/wire.md.
struct request {
  std::string prompt;
  std::vector<chat_message> messages = {};  // instead of `prompt`, for chat models
  std::vector<std::int32_t> ids = {};       // instead of both: the prompt as token ids
  std::optional<std::int64_t> max_tokens = {}, min_tokens = {};
  std::optional<double> temperature = {}, top_p = {}, min_p = {};
  std::optional<std::int64_t> top_k = {};
  std::optional<double> repetition_penalty = {}, frequency_penalty = {}, presence_penalty = {};
  std::optional<std::uint64_t> seed = {};  // the same seed gives the same tokens
  // What few requests ask for (docs/sampling.md). Models on CUDA refuse these, but not disallow_tokens.
  std::optional<std::int64_t> repetition_range = {}, repetition_decay = {};
  std::optional<double> top_n_sigma = {}, top_a = {}, typical_p = {}, tfs = {};
  std::optional<double> xtc_probability = {}, xtc_threshold = {};
  std::optional<double> dynatemp_range = {}, dynatemp_exponent = {};
  std::optional<double> smoothing_factor = {}, smoothing_curve = {};
  std::optional<bool> temperature_last = {};
  std::optional<std::int64_t> no_repeat_ngram_size = {};
  std::vector<std::string> bad_words = {};
  std::optional<double> dry_multiplier = {}, dry_base = {};
  std::optional<std::int64_t> dry_allowed_length = {}, dry_range = {};
  std::optional<std::vector<std::string>> dry_sequence_breakers = {};
  std::optional<std::int64_t> mirostat_mode = {};
  std::optional<double> mirostat_tau = {}, mirostat_eta = {};
  std::vector<std::int64_t> disallow_tokens = {}, allowed_token_ids = {};  // empty: none; all
  std::vector<std::string> stop = {};
  std::vector<std::string> banned_strings = {};  // texts that the answer must not have; any case
  bool ignore_eos = false;
  constraint answer = {};
  int priority = 0;  // higher first
  std::optional<std::chrono::milliseconds> deadline = {};
};

struct token {
  std::int32_t id = 0;
  std::uint32_t index = 0;          // position in the job's output: 0, 1, 2, …
  std::chrono::microseconds at{0};  // when it was sampled, since the job was submitted
};

struct ending {
  std::string reason;  // stop, length, cancel, timeout, banned or error; refused: the job never ran
  std::string error;   // the message, if the reason is error or refused
  std::uint32_t input_tokens = 0, output_tokens = 0;
  double ttft_ms = 0, decode_ms = 0, max_gap_ms = 0;
};

class engine;

class job {
 public:
  using executor_type = boost::asio::any_io_executor;

  ~job();
  job(job&&) noexcept = default;
  job& operator=(job&&) noexcept;

  executor_type get_executor() const noexcept;
  const std::string& id() const noexcept;  // 32 hex digits, as in the server's lists

  // Completes with void(error_code, std::size_t): the number of tokens written to `into`, or 0 and
  // boost::asio::error::eof. Only one read may be pending.
  template <class Token = boost::asio::use_awaitable_t<>>
  auto async_read_some(std::span<token> into, Token&& completion = {}) {
    auto initiate = [](auto handler, std::shared_ptr<state> s, std::span<token> out) {
      auto slot = boost::asio::get_associated_cancellation_slot(handler);
      const auto number = read(*s, waiting(std::move(handler), executor_of(*s)), out);
      if (slot.is_connected()) {
        slot.assign([s = std::weak_ptr(s), number](boost::asio::cancellation_type type) {
          const auto alive = s.lock();
          if (alive && type != boost::asio::cancellation_type::none) cancel_read(*alive, number);
        });
      }
    };
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        std::move(initiate), completion, state_, into);
  }

  // The text of consecutive tokens that were read from this job, in whole UTF-8 characters. Special tokens
  // have no text.
  std::string text(std::span<const token> tokens) const;

  void cancel();
  const ending& ended() const;  // REQUIRES: a read has completed with eof

 private:
  friend class engine;
  struct state;
  using waiting = detail::saved_handler<boost::system::error_code, std::size_t>;
  explicit job(std::shared_ptr<state> s) noexcept;

  static const boost::asio::any_io_executor& executor_of(const state& s);
  static std::uint64_t read(state& s, waiting handler, std::span<token> into);
  static void cancel_read(state& s, std::uint64_t number);

  std::shared_ptr<state> state_;
};

class engine {
 public:
  using executor_type = boost::asio::any_io_executor;

  // Throws engine_error if an option is wrong. Reads no file yet.
  engine(boost::asio::any_io_executor yours, engine_options o);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  executor_type get_executor() const noexcept;

  // Loads the model. Completes with void(std::exception_ptr): null once jobs may be submitted, or an
  // engine_error. May be called only once.
  template <class Token = boost::asio::use_awaitable_t<>>
  auto async_load(Token&& completion = {}) {
    auto initiate = [](auto handler, engine* self) {
      self->load(loading(std::move(handler), self->get_executor()));
    };
    return boost::asio::async_initiate<Token, void(std::exception_ptr)>(std::move(initiate), completion,
                                                                        this);
  }

  // Never fails: a job that is refused ends at once, and ended() says why. With g++ 12, a request in braces
  // must not be part of a co_await expression.
  job submit(request r);

 private:
  friend class job;
  friend class server;
  struct state;
  using loading = detail::saved_handler<std::exception_ptr>;
  void load(loading handler);

  std::shared_ptr<state> state_;
};

}  // namespace weir
