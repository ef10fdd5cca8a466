// Orders for the models of workers, over the bus: a permit first, then the order, once, by whoever hears.
#include <catch2/catch.hpp>

#include "core/fleet/fleet_board.h"
#include "core/fleet/order_frame.h"
#include "core/fleet/subjects.h"
#include "tests/actors/fleet_town.h"

namespace weir::tests::fleet_orders_test {
namespace {

namespace wire = core::fleet;
using std::chrono::milliseconds;
using std::chrono::seconds;
using answer = core::result<wire::wish_answer>;

struct ordered_fleet : fleet_town {
  explicit ordered_fleet(std::uint64_t seed, net_manners how = {}) : fleet_town(seed, "rate=50", how) {
    fleet::worker_options o;
    o.on_order = [this](wire::model_wish w, std::function<void(wire::wish_answer)> done) {
      wishes.push_back(std::move(w));
      here.after(takes, [done, n = wishes.size()] {
        done({200, {{"Retry-After", "7"}}, std::to_string(n)});
      });
    };
    add_worker(o);
    add_gateway();
    wait(seconds(1));
  }
  std::shared_ptr<std::optional<answer>> begin(const std::string& worker, std::string body) {
    auto said = std::make_shared<std::optional<answer>>();
    wire::model_wish w;
    w.verb = wire::model_verb::change;
    w.name = "chat";
    w.any_path = true;
    w.body = std::move(body);
    gateways.front().side->order(worker, std::move(w), here.get_executor(),
                                 [said](answer a) { said->emplace(std::move(a)); });
    return said;
  }
  answer ordered(const std::string& worker, std::string body) {
    const auto said = begin(worker, std::move(body));
    REQUIRE(here.run([&] { return said->has_value(); }, std::chrono::hours(1)));
    return **said;
  }
  const std::string& worker() { return workers.front().side->name(); }

  std::vector<wire::model_wish> wishes;  // that the worker was told to carry out
  core::duration takes = milliseconds(10);
};

}  // namespace

TEST_CASE("an order reaches its worker, and the answer comes back as it is, however long it takes") {
  ordered_fleet t(201);
  const auto a = t.ordered(t.worker(), R"({"action":"sleep"})");
  REQUIRE(a.has_value());
  CHECK(a->status == 200);
  CHECK(a->headers == std::vector<std::pair<std::string, std::string>>{{"Retry-After", "7"}});
  CHECK(a->body == "1");
  REQUIRE(t.wishes.size() == 1);
  CHECK(t.wishes[0].verb == wire::model_verb::change);
  CHECK(t.wishes[0].name == "chat");
  CHECK(t.wishes[0].any_path);
  CHECK(t.wishes[0].body == R"({"action":"sleep"})");
  t.takes = std::chrono::minutes(10);
  CHECK(t.ordered(t.worker(), "{}")->body == "2");
  CHECK(t.workers.front().side->counts().orders == 2);
  CHECK(t.gateways.front().side->counts().orders == 2);
}

TEST_CASE("an order for a worker that is not there, or takes none, or dies meanwhile, ends with an error") {
  ordered_fleet t(202);
  CHECK(t.ordered("aaaaaaaaaaaaaaaa", "{}").error().code == core::errc::not_found);
  auto& silent = t.add_worker();  // without on_order
  t.wait(seconds(1));
  CHECK(t.ordered(silent.side->name(), "{}").error().code == core::errc::unavailable);
  t.takes = std::chrono::minutes(10);
  const auto said = t.begin(t.worker(), "{}");
  t.wait(seconds(1));
  CHECK(!said->has_value());
  CHECK(t.wishes.size() == 1);
  t.workers.front().bus->kill();
  REQUIRE(t.here.run([&] { return said->has_value(); }, seconds(5)));
  CHECK((*said)->error().code == core::errc::unavailable);
}

TEST_CASE("an order without a permit, with a used one or with one that is too old is dropped and counted") {
  ordered_fleet t(203);
  const auto someone = t.net->join();
  const auto to = wire::subjects("main").control_of(t.worker());
  const auto ask_permit = [&] {
    std::optional<actors::bus::answer> got;
    someone->ask(to, wire::frame_of(wire::permit_wish{}), seconds(1), t.here.get_executor(),
                 [&](actors::bus::answer a) { got = std::move(a); });
    REQUIRE(t.here.run([&] { return got.has_value(); }, seconds(2)));
    const auto permit = wire::read_permit(got->bytes);
    REQUIRE(permit.has_value());
    return permit->number;
  };
  const auto broken = [&] {
    t.wait(milliseconds(300));
    return t.workers.front().side->counts().broken;
  };
  wire::model_wish w;
  w.body = "{}";
  const auto before = broken();
  for (w.permit = 0; w.permit < 50; ++w.permit) someone->publish(to, wire::frame_of(w));
  CHECK(broken() == before + 50);
  CHECK(t.wishes.empty());
  w.permit = ask_permit();
  for (int i = 0; i < 3; ++i) someone->publish(to, wire::frame_of(w));  // said again by somebody
  CHECK(broken() == before + 52);
  CHECK(t.wishes.size() == 1);
  w.permit = ask_permit();
  t.wait(seconds(6));
  someone->publish(to, wire::frame_of(w));
  CHECK(broken() == before + 53);
  CHECK(t.wishes.size() == 1);
}

TEST_CASE("who asks for permits without end keeps nobody out") {
  ordered_fleet t(204);
  const auto stranger = t.net->join();
  const auto to = wire::subjects("main").control_of(t.worker());
  for (int i = 0; i < 5000; ++i) stranger->publish(to, "_INBOX.nobody", wire::frame_of(wire::permit_wish{}));
  CHECK(t.ordered(t.worker(), "{}").has_value());
}

TEST_CASE("no order is carried out twice where messages come twice or are lost") {
  net_manners lossy;
  lossy.loss = 0.05;
  lossy.twice = 0.3;
  ordered_fleet t(205, lossy);
  unsigned fine = 0;
  for (int i = 0; i < 30; ++i)
    if (t.gateways.front().side->workers().size() == 1 && t.ordered(t.worker(), std::to_string(i))) ++fine;
  CHECK(fine >= 20);
  std::set<std::string> bodies;
  for (const auto& w : t.wishes) CHECK(bodies.insert(w.body).second);
  CHECK(t.wishes.size() >= fine);
}

TEST_CASE("a board says which models a worker knows and how they stand") {
  ordered_fleet t(206);
  const auto seen = t.gateways.front().side->workers();
  REQUIRE(seen.size() == 1);
  const auto& known = seen.front().board.known;
  REQUIRE(known.size() == 1);
  CHECK(known[0].name == "sim");
  CHECK(known[0].state == "ready");
  CHECK(known[0].share == 1);
}

}  // namespace weir::tests::fleet_orders_test
