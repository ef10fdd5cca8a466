// Ten thousand lives in virtual time: random jobs that are read fast or slowly, cancelled, deserted or late, through the
// protocol that sockets speak and the service behind it; and a drain at the end.
#include <map>

#include "tests/support/life.h"

using namespace weir;
using namespace weir::tests;
using namespace std::chrono_literals;

namespace {

actors::request anything(std::mt19937_64& random) {
  actors::request r;
  r.input = std::string(1 + random() % 400, static_cast<char>('a' + random() % 26));
  r.max_tokens = 1 + static_cast<std::int64_t>(random() % 150);
  r.priority = static_cast<int>(random() % 3);
  if (random() % 5 == 0) r.deadline = std::chrono::milliseconds(1 + random() % 2000);
  if (random() % 4 == 0) r.stop = {fmt::format("w{:02d}", random() % 100)};
  return r;
}

struct town {
  explicit town(std::uint64_t seed) : here(seed) {
    actors::service_options o;
    o.models.push_back({"sim", "sim:rate=200,prefill=20000,arrive=staggered", false});
    o.owner.device = "sim";
    o.owner.max_batch = 8;
    o.owner.queue = 24;
    o.owner.kv_tokens = 2048;
    o.owner.audit = true;
    service = here.make_service(std::move(o));
    hall = std::make_shared<net::hall>(*service, net::server_options{});
    hub = std::make_shared<net::hub>(hall, here.get_executor());
    tick();
  }

  void tick() {
    hub->tell(net::hub::event::tick);
    if (!closed) here.after(250ms, [this] { tick(); });
  }

  void people(std::size_t n) {
    core::duration when{};
    for (std::size_t i = 0; i < n; ++i) {
      lives.push_back(std::make_shared<life>(here, hub));
      when += std::chrono::microseconds(here.random() % 60000);
      here.after(when, [this, l = lives.back()] { l->begin(anything(here.random), {}); });
    }
    here.after(when, [this] {
      service->drain(here.get_executor(), [this] { closed = true; });
    });
  }

  world here;
  std::unique_ptr<actors::service> service;
  std::shared_ptr<net::hall> hall;
  std::shared_ptr<net::hub> hub;
  std::vector<std::shared_ptr<life>> lives;
  bool closed = false;
};

}  // namespace

TEST_CASE("lives: ten thousand jobs each end once and leave nothing, whatever their clients do") {
  std::map<std::string, int> endings;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    town t(seed);
    t.people(250);
    REQUIRE(t.here.run([&] { return t.closed; }));
    t.here.run([] { return false; }, 1s);  // what the last ones still have to say
    for (const auto& l : t.lives) {
      REQUIRE(l->over());
      l->judge();
      ++endings[l->ending()];
    }
    const auto stats = t.service->stats();
    REQUIRE(stats.pages.used == 0);
    REQUIRE(stats.jobs.queued + stats.jobs.prefilling + stats.jobs.decoding == 0);
    REQUIRE(t.service->ready().reason == "shutting down");  // and not that the books do not balance
  }
  for (const char* every : {"length", "stop", "timeout", "cancel", "overloaded", "deserted"}) {
    CAPTURE(every);
    CHECK(endings[every] > 300);
  }
}
