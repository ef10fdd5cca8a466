// engine_state.h — the private state of weir::engine, which weir::server uses too.
//
// Thread safety: as the engine's.
#pragma once

#include <unordered_set>

#include "actors/service.h"
#include "actors/timekeeper.h"
#include "weir/engine.hpp"

namespace weir {

struct engine::state {
  state(boost::asio::any_io_executor e, actors::service_options o)
      : ex(std::move(e)), service(std::move(o), clock) {}

  boost::asio::any_io_executor ex;
  actors::system_time clock;
  actors::service service;
  loading handler;                       // of async_load(), while it is pending
  std::unordered_set<job::state*> jobs;  // the state of every weir::job that exists
};

inline engine_error to_exception(const core::error& e) { return {e.param, e.message}; }

}  // namespace weir
