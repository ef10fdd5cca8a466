// Since when a frame is late: a client that lets tokens wait, by its window or its pace, makes none late. In
// virtual time and without sockets.
#include "net/ws/ws_lane.h"

#include <catch2/catch.hpp>

#include "tests/support/world.h"

namespace weir::tests::ws_lateness_test {

using namespace std::chrono_literals;
using next = net::ws::lane::next;

namespace {

constexpr auto gap = 10ms;  // between two tokens of the job

// A job of eight tokens and the lane that created it.
struct followed {
  explicit followed(net::ws::follow_wishes how) {
    actors::service_options o;
    o.owner.device = "sim";
    o.models.push_back({"sim", "sim:rate=100,prefill=100000000"});
    service = here.make_service(std::move(o));
    state = std::make_shared<net::server_state>(*service, net::server_options());
    hub = std::make_shared<net::hub>(state, here.get_executor());
    state->hubs = {hub};
    actors::request asked;
    asked.input = "x";
    asked.max_tokens = 8;
    net::kept_job job;
    job.stream = service->submit(std::move(asked), here.get_executor(), [] {});
    job.as_created = how.over({});
    stream = job.stream;
    net::ws::response_create said;
    said.id = "a";
    said.how = how;
    lane.emplace(std::move(said), hub->jobs().keep(std::move(job)));
    scratch.ids = &hub->ids();
    scratch.clock = &service->clock();
    pass(0ms);
    REQUIRE(take() == next::frame);  // response.created
  }

  void pass(core::duration time) {
    bool over = false;
    here.after(time, [&] { over = true; });
    here.run([&] { return over; });
  }
  next take() {
    out.clear();
    scratch.ready.reset();
    return lane->take(out, scratch);
  }
  // How late the frame that is taken now leaves.
  core::duration lateness() {
    REQUIRE(take() == next::frame);
    REQUIRE(scratch.ready.has_value());
    return here.now() - *scratch.ready;
  }

  world here{1};
  std::unique_ptr<actors::service> service;
  std::shared_ptr<net::server_state> state;
  std::shared_ptr<net::hub> hub;
  std::shared_ptr<actors::job_stream> stream;
  std::optional<net::ws::lane> lane;
  net::ws::scratch scratch;
  std::string out;
};

net::ws::follow_wishes window_of(std::uint32_t tokens) {
  net::ws::follow_wishes how;
  how.window = tokens;
  return how;
}

}  // namespace

TEST_CASE("a token that the client's window held is late from the ack on, and no sooner") {
  followed f(window_of(4));
  f.pass(1s);  // all eight tokens are there, and the window lets four of them go
  CHECK(f.lateness() >= 1s - 8 * gap);
  REQUIRE(f.take() == next::nothing);
  f.pass(5s);
  REQUIRE(f.lane->ack(4, f.here.now()));
  CHECK(f.lateness() == 0s);
  CHECK(f.take() == next::last_frame);
}

TEST_CASE("what waits for this server after the ack is late") {
  followed f(window_of(4));
  f.pass(1s);
  f.take();
  REQUIRE(f.take() == next::nothing);
  REQUIRE(f.lane->ack(4, f.here.now()));
  f.pass(3s);
  CHECK(f.lateness() == 3s);
}

TEST_CASE("an ack that lets nothing go does not make later tokens less late") {
  followed f(window_of(64));
  while (f.stream->published() < 2) f.pass(gap);
  f.take();
  REQUIRE(f.take() == next::nothing);
  f.pass(1s);
  const auto sampled = f.stream->sampled_at(7);
  REQUIRE(f.lane->ack(2, f.here.now()));
  CHECK(f.lateness() == f.here.now() - sampled);
}

TEST_CASE("tokens that a cancel lets out of the window count for no lateness") {
  followed f(window_of(1));
  while (f.stream->published() < 4) f.pass(gap);
  f.take();
  REQUIRE(f.take() == next::nothing);
  f.lane->cancel();
  f.pass(1s);
  REQUIRE(f.take() == next::frame);
  CHECK_FALSE(f.scratch.ready);
}

TEST_CASE("a token that the pace held is late from the moment at which it was due") {
  net::ws::follow_wishes how;
  how.even = true;
  followed f(how);
  while (f.stream->published() < 3) f.pass(gap);
  f.take();  // the first tokens
  while (f.take() != next::nothing) {
  }
  REQUIRE(f.scratch.due.has_value());
  f.pass(*f.scratch.due - f.here.now());
  CHECK(f.lateness() == 0s);
}

}  // namespace weir::tests::ws_lateness_test
