// arrival.h — a request between the moment it was read and the moment its jobs are submitted to their model's
// owner, or refused.
//
// Thread safety: one thread at a time: first the shard that read the request, then its tasks in the text
// pools.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "actors/constraint_store.h"
#include "actors/job_state.h"
#include "actors/make_job.h"
#include "actors/model_use.h"
#include "actors/request.h"
#include "actors/served_model.h"
#include "core/memory/account.h"

namespace weir::actors {

// Bytes that a job is charged in the memory account beside its prompt and its log: for its stream, its
// sequence and its entries in lists.
inline constexpr std::uint64_t job_bytes = 4096;
// The same where the request asks for logprobs: their queue, and what waits for it in the sequence.
inline constexpr std::uint64_t logprobs_job_bytes = job_bytes + 48 * 1024;
inline std::uint64_t job_bytes_of(const request& r) {
  return r.top_logprobs ? logprobs_job_bytes : job_bytes;
}

// Bytes of what a request has a client's choice of length for: its input (text, messages or token ids), its
// constraint, its stop strings and ids, its biases. Takes as long as looking at each value of its messages.
std::uint64_t input_bytes(const request& r);

// Bytes of the lists beside: stop ids, stop strings and biases.
std::uint64_t list_bytes(const request& r);

// Bytes that an engine keeps of each token of a job's output: the token, and where banned strings may begin
// in it.
inline std::uint32_t engine_token_bytes(const core::job& j) {
  return sizeof(core::token) + (j.banned.empty() ? 0 : sizeof(std::uint32_t));
}

// Error (overloaded) for a job that the memory account has no room for.
core::error no_memory_for_clients();

struct arrival {
  request asked;
  // The jobs of the request, all on one shard; never empty. The choices of the first prompt come first, in
  // order, then those of the next. Each prompt has the same number of choices.
  std::vector<std::shared_ptr<job_stream::state_block>> choices;
  std::shared_ptr<const served_model> model;                      // set before prepare() or judge()
  model_use::way way;                                             // to the model, until the jobs are admitted
  std::shared_ptr<ended_jobs> ended;                              // of the model; null: it is not known
  bool waits = false;                                             // for the load of the model
  bool far = false;                                               // which runs in other processes
  core::memory_hold memory;                                       // for the text, then for the prompts
  std::optional<core::result<compiled_constraint>> constraint;    // of the request; set before bring_in()
  prepared_request prepared;                                      // set by prepare()
  std::uint64_t prefix_owner = 0;  // shares computed prefixes with equal owners; see prefix_salt

  std::uint64_t bytes = 0;  // input_bytes() of `asked`, as it came

  // Whether all choices were cancelled: nobody waits for the request.
  bool abandoned() const;
  // Finds out what is known of the answer before its prompt is tokenised. false: the request was refused, or
  // nobody waits for it. To be called first.
  bool prepare(core::turn& at);
  // Checks a request that waits for a model that sleeps (`model`), without its constraint: false: it was
  // refused, or nobody waits for it. Takes as long as tokenising the prompts, and keeps nothing.
  bool judge(core::turn& at);
  // What the answers may be; null: anything. REQUIRES: prepare() has returned true.
  const core::grammar::constraint_text* wanted() const;
  // Whether no constraint has to be compiled: there is none, or it was compiled or refused before.
  bool constraint_is_ready();
  // Compiles the constraint. false: another request's task compiles it, and calls `settled` at the end; then
  // call this again. REQUIRES: wanted().
  bool compile_constraint(core::turn& at, std::function<void()> settled);

  // Makes one job for each choice that was not cancelled meanwhile and submits them to the model. They are
  // admitted or refused together; a refusal goes to their streams. Takes as long as tokenising the prompts.
  // May throw where memory is short: admission then counts no job that was not submitted, and the caller must
  // refuse(). REQUIRES: constraint_is_ready() or compile_constraint() has returned true.
  void bring_in(core::turn& at);

  // Posts the refusal to the choices' shard, where it reaches every choice that was neither submitted nor has
  // ended.
  void refuse(const core::error& why) const;
};

}  // namespace weir::actors
