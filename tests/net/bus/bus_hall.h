// bus_hall.h — tests of a bus: the executor that its handlers run on, and waiting for what they say.
//
// Thread safety: one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/bus.h"
#include "net/bus/nats_bus.h"
#include "tests/support/nats_server.h"

namespace weir::tests {

// False, and a line that says so, where a test with a real server has to be left out.
inline bool can_run_nats() {
  if (!net::has_nats()) WARN("left out: this build has no NATS (libnats-dev)");
  if (net::has_nats() && nats_program().empty()) WARN("left out: nats-server is not installed");
  return net::has_nats() && !nats_program().empty();
}

class bus_hall {
 public:
  using bus = actors::bus;

  std::unique_ptr<bus> join(const std::string& urls) {
    core::join_settings s;
    s.join = urls;
    return join(s);
  }
  std::unique_ptr<bus> join(const core::join_settings& s) {
    auto b = net::join_nats(s, hooks());
    INFO((b ? std::string() : b.error().message));
    REQUIRE(b.has_value());
    return std::move(*b);
  }
  net::nats_hooks hooks() {
    return {"a test", [this](std::string_view line) {
              const std::lock_guard hold(lock_);
              troubles_.emplace_back(line);
            }};
  }
  std::string troubles() const {
    const std::lock_guard hold(lock_);
    std::string out;
    for (const auto& t : troubles_) out += t + '\n';
    return out;
  }

  bus::executor executor() { return io_.get_executor(); }

  // Runs handlers until it is so. The test fails where it does not become so in a minute.
  void until(const std::function<bool()>& so) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!so()) {
      if (std::chrono::steady_clock::now() > give_up) FAIL("not so after a minute; " + troubles());
      io_.restart();
      io_.run_for(std::chrono::milliseconds(5));
    }
  }
  // Runs what has been posted.
  void drain() {
    io_.restart();
    io_.poll();
  }

  bus::answer ask(bus& b, std::string_view subject, std::string_view bytes = "",
                  core::duration patience = std::chrono::seconds(30)) {
    std::optional<bus::answer> got;
    b.ask(subject, bytes, patience, executor(), [&](bus::answer a) { got = std::move(a); });
    until([&] { return got.has_value(); });
    return *got;
  }
  // Once the server has taken all that `b` said before.
  void settle(bus& b) { REQUIRE(ask(b, "nobody.is.there").how == bus::answer::how::nobody_there); }

  std::unique_ptr<bus::subscription> hear(bus& b, const std::string& subject, bus::handler what) {
    auto s = b.subscribe(subject, executor(), std::move(what));
    REQUIRE(s.has_value());
    return std::move(*s);
  }

 private:
  boost::asio::io_context io_{1};
  mutable std::mutex lock_;  // lines come from threads of the bus
  std::vector<std::string> troubles_;
};

}  // namespace weir::tests
