// messages.h — every message between weir's own actors, in one place.
//
// Each has a constructor: an aggregate temporary inside a co_await expression is destroyed twice by g++ 12.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/runtime/ref.h"
#include "actors/served_model.h"
#include "core/error.h"
#include "core/job.h"

namespace weir::actors {

// What to load and how; see service_options.
struct model_spec {
  std::string name;    // as clients call it
  std::string source;  // a directory, random:SHAPE[:DTYPE], or sim[:SPEC]
  bool force_chatml = false;
};

using load_progress = std::function<void(const std::string& model, std::uint64_t done, std::uint64_t total)>;

// --- to gpu_owner

struct submit_job {
  core::job job;
  std::size_t engine;
  submit_job(core::job j, std::size_t e) : job(std::move(j)), engine(e) {}
};

struct cancel_job {
  core::job_id id;
  std::size_t engine;
  core::finish_reason why;
  cancel_job(core::job_id i, std::size_t e, core::finish_reason w) : id(i), engine(e), why(w) {}
};

struct load_model {
  using result = core::result<std::shared_ptr<const served_model>>;
  model_spec spec;
  load_progress progress;
  reply<result> answer;
  load_model(model_spec s, load_progress p, reply<result> a)
      : spec(std::move(s)), progress(std::move(p)), answer(std::move(a)) {}
};

// The time that the owner waited for has come.
struct time_came {};

using owner_msg = std::variant<submit_job, cancel_job, load_model, time_came>;

}  // namespace weir::actors
