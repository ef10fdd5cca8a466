// service_fixture.h — a service on the simulated device and one shard to read from, for tests.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <functional>

#include "actors/service.h"
#include "tests/support/sim_text.h"

namespace weir::tests {

using actors::job_stream;
using phase = job_stream::phase;

struct service_fixture {
  explicit service_fixture(const std::string& sim = "rate=5000,prefill=100000000",
                           const std::function<void(actors::service_options&)>& change = {}) {
    actors::service_options o;
    o.models.push_back({"sim", "sim:" + sim});
    o.owner.device = "sim";
    if (change) change(o);
    service = std::make_unique<actors::service>(std::move(o), clock);
  }

  ~service_fixture() {
    service.reset();  // while the shard still runs handlers, as in a server
    io.restart();
    io.poll();
  }

  service_fixture& load() {
    core::result<> r = core::make_error(core::errc::internal, "load never answered");
    bool answered = false;
    service->load({}, io.get_executor(), [&](core::result<> got) {
      r = std::move(got);
      answered = true;
    });
    run_until([&] { return answered; });
    REQUIRE(r.has_value());
    return *this;
  }

  std::shared_ptr<job_stream> submit(actors::request r, std::function<void()> changed = [] {}) {
    return service->submit(std::move(r), io.get_executor(), std::move(changed));
  }

  // Runs the shard until the condition holds; a test that waits for ever fails instead.
  void run_until(const std::function<bool()>& done) {
    const auto work = boost::asio::make_work_guard(io);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(3);
    while (!done()) {
      io.restart();
      io.run_one_for(std::chrono::milliseconds(20));
      if (std::chrono::steady_clock::now() > limit) FAIL("waited for three minutes in vain");
    }
  }

  void run_to_end(const std::shared_ptr<job_stream>& s) {
    run_until([&] { return s->state() == phase::done || s->state() == phase::refused; });
  }

  // The published picture, once it says what the test waits for.
  void await_stats(const std::function<bool(const actors::snapshot&)>& says) {
    run_until([&] { return says(service->stats()); });
  }

  actors::system_time clock;
  boost::asio::io_context io{1};
  std::unique_ptr<actors::service> service;
};

inline actors::request ask(std::string prompt, std::int64_t max_tokens, std::uint64_t seed = 7) {
  actors::request r;
  r.input = std::move(prompt);
  r.max_tokens = max_tokens;
  r.sampling.seed = seed;
  return r;
}

inline std::string text_of(const job_stream& s) {
  std::string out;
  s.text_of(0, s.published(), out);
  return out;
}

}  // namespace weir::tests
