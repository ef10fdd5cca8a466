// made_job.h — a simulated model as requests find it, and the job that a request becomes.
#pragma once

#include <utility>

#include "actors/make_job.h"
#include "tests/support/free_turn.h"

namespace weir::tests {

struct sim_served : actors::served_model {
  sim_served() {
    name = "m";
    info.vocab_size = 1000;
    context = 100;
    tokenizer = core::make_sim_tokenizer();
    chat = core::chat_template::chatml();
    max_tokens_default = 55;
  }
};

inline core::result<core::job> made(const actors::request& r, const actors::served_model& m) {
  free_turn at;
  auto j = actors::job_without_prompt(r, m);
  if (!j) return j;
  if (auto ok = actors::take_prompt(*j, r, {}, m, at); !ok) return ok.error();
  return j;
}

}  // namespace weir::tests
