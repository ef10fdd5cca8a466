// Pools of pages that give way to a model that comes or wakes, and grow again, in virtual time.
#include "tests/actors/order_town.h"

namespace weir::tests::model_pools_test {

using namespace std::chrono_literals;
using actors::model_state;
using core::errc;

namespace {

// Sequences of up to 65,536 tokens, which are 1,024 pages of a megabyte, in a batch of 4: 4,096 pages are of
// use, and 1,028 are the floor. Pages come and go in steps of 64.
constexpr const char* pooled = "sim:rate=1000,prefill=1000000,ctx=65536,pages=1024/64/16384";

// A device of 10,000 MB on which `a` takes 2,000 MB and a pool of 4,096 MB.
struct pool_town : order_town {
  explicit pool_town(const std::string& a = "", std::uint64_t total_mb = 10'000, std::uint64_t seed = 11)
      : order_town(seed, options(a, total_mb)) {}
  static actors::service_options options(const std::string& a, std::uint64_t total_mb) {
    actors::service_options o;
    o.models.push_back({"a", pooled + std::string(",mb=2000") + a});
    o.owner.max_batch = 4;
    o.owner.queue = 8;
    o.owner.audit = true;
    o.sleep_bytes = 20'000 * one_mb;
    o.measured.push_back(sim_device(total_mb));
    o.seen = std::make_shared<core::incidents>([](std::string_view) {});
    return o;
  }
  std::string other(std::uint64_t mb, const std::string& more = "") const {
    return pooled + (",mb=" + std::to_string(mb)) + more;
  }
  std::uint64_t pages_mb(std::string_view name) const { return status(name).bytes.pages / one_mb; }
  // What the account says is what the models say, and what their engines have.
  void balances() const {
    std::uint64_t sum = 0;
    for (const auto& m : service->all_models().models) sum += m.bytes.weights + m.bytes.pages;
    CHECK(service->all_models().devices.at(0).models == sum);
    for (const auto& m : service->all_models().models)
      if (m.state == model_state::ready) CHECK(figures(m.name).engine.pages_total * one_mb == m.bytes.pages);
  }
  // A job whose prompt takes so many pages.
  std::shared_ptr<job_stream> ask_for_pages(const std::string& model, std::size_t pages, std::int64_t tokens,
                                            std::uint64_t seed) {
    auto r = ask(std::string(pages * 64, static_cast<char>('a' + seed % 26)), tokens, seed);
    r.model = model;
    return send(std::move(r));
  }
};

}  // namespace

TEST_CASE("pools: one gives way to a model that comes, with jobs all the while, and grows once it has gone") {
  pool_town t, alone;
  CHECK(t.pages_mb("a") == 4096);
  const auto job = t.ask_of("a", 3000), calm = alone.ask_of("a", 3000);
  t.pass(20ms);
  t.well(t.load("b", t.other(3000)));
  CHECK(t.pages_mb("a") == 2496);  // the floors, then equal bytes of the rest
  CHECK(t.pages_mb("b") >= 2470);
  CHECK(t.status("a").gave_way == 1);
  CHECK(t.status("a").pages_given == 1600);
  CHECK(t.status("a").kv_tokens == 2496 * 64);
  t.pass(1s);
  t.balances();
  t.answers("b");
  t.well(t.unload("b"));
  t.pass(2s);
  CHECK(t.pages_mb("a") == 4096);
  CHECK(t.status("a").pages_taken == 1600);
  t.settle();
  alone.settle();
  CHECK(text_of(*job) == sim_text(3, 3000));
  CHECK(job->sampled_at_us(2999) - job->sampled_at_us(0) ==
        calm->sampled_at_us(2999) - calm->sampled_at_us(0));
  t.balances();
}

TEST_CASE("pools: one whose size is a number, or that cannot change, is never touched") {
  pool_town t(",mb=10,pages=1024/0/0");
  CHECK(t.ill(t.load("b", t.other(7000))).code == errc::does_not_fit);
  CHECK(t.pages_mb("a") == 4096);
  pool_town n;
  n.well(n.unload("a"));
  n.well(n.load("a", "", {}, 4096 * 64));
  CHECK(n.pages_mb("a") == 4096);
  CHECK(n.ill(n.load("b", n.other(7000))).code == errc::does_not_fit);
  n.pass(1s);
  CHECK(n.pages_mb("a") == 4096);
  CHECK(n.status("a").gave_way == 0);
}

TEST_CASE("pools: no pool goes below its floor, and what does not fit then is refused with the numbers") {
  pool_town t;
  t.well(t.load("b", t.other(6700)));  // 1,088 pages of a in steps, 128 of b at least, and 84 MB are left
  CHECK(t.pages_mb("a") == 1088);
  t.well(t.unload("b"));
  t.pass(1s);
  CHECK(t.pages_mb("a") == 4096);
  const auto no = t.load("b", t.other(6785));
  CHECK(t.ill(no).code == errc::does_not_fit);
  CHECK((*no->begun).error().plan.find(R"("fits":false)") != std::string::npos);
  CHECK(t.pages_mb("a") == 4096);
  t.balances();
}

TEST_CASE("pools: pages in use stay, and no job ends for a newcomer") {
  pool_town t;
  for (std::uint64_t i = 0; i < 4; ++i) t.ask_for_pages("a", 700, 1500, i);
  t.pass(500ms);
  REQUIRE(t.figures("a").engine.pages_used >= 2800);
  const auto no = t.ill(t.load("b", t.other(6000)));
  CHECK(no.code == errc::does_not_fit);
  CHECK(no.message.find("sim lacks") != std::string::npos);
  CHECK(t.pages_mb("a") == 4096);
  t.well(t.load("c", t.other(4500)));
  CHECK(t.pages_mb("a") >= 2800);
  t.settle();
  for (std::uint64_t i = 0; i < 4; ++i) CHECK(text_of(*t.all[i]) == sim_text(i, 1500));
  t.balances();
}

TEST_CASE(
    "pools: where the load fails they have their pages again, and the account is as it was to the byte") {
  pool_town t;
  const auto before = t.service->all_models().devices.at(0).models;
  for (const std::string fault : {",fault=load", ",load=200,fault=load"}) {
    const auto job = t.ask_of("a", 300);
    CHECK(t.ill(t.load("b", t.other(6000, fault))).message.find("fault=load") != std::string::npos);
    CHECK(t.pages_mb("a") == 4096);
    CHECK(t.service->all_models().devices.at(0).models == before);
    t.settle();
    CHECK(text_of(*job) == sim_text(3, 300));
    t.balances();
  }
  CHECK(t.status("a").pages_given == t.status("a").pages_taken);
}

TEST_CASE("pools: where one of several breaks, the order ends, and those before it have theirs again") {
  pool_town t("", 20'000);
  t.well(t.load("c", t.other(2000, ",fault=pages@1")));
  t.pass(1s);
  const auto before = t.service->all_models().devices.at(0).models;
  const auto a = t.pages_mb("a"), c = t.pages_mb("c");
  const auto job = t.ask_of("a", 500);
  t.pass(20ms);
  const auto no = t.ill(t.load("b", t.other(13'000)));
  CHECK(no.code == errc::internal);
  CHECK(no.message.find("c was to give") == 0);
  CHECK(t.pages_mb("a") == a);
  CHECK(t.pages_mb("c") == c);
  CHECK(t.service->all_models().devices.at(0).models == before);
  CHECK(t.status("a").pages_given > 0);
  CHECK(t.status("a").pages_given == t.status("a").pages_taken);
  t.settle();
  CHECK(text_of(*job) == sim_text(3, 500));
  t.balances();
}

TEST_CASE("pools: a change that fails once is asked for once more") {
  pool_town t(",fault=pages_room@1");
  t.well(t.load("b", t.other(6000)));
  t.pass(1s);
  t.balances();
  t.answers("a");
  t.answers("b");
}

TEST_CASE("pools: a device that fails in the middle of a change is started again, and jobs go on") {
  pool_town t(",fault=pages@1");
  const auto job = t.ask_of("a", 500);
  t.pass(20ms);
  const auto no = t.ill(t.load("b", t.other(6000)));
  CHECK(no.code == errc::internal);
  CHECK(no.message.find("a was to give") == 0);
  t.settle();
  CHECK(text_of(*job) == sim_text(3, 500));
  t.answers("a", 8);
  t.pass(1s);
  t.balances();
}

TEST_CASE("pools: they grow into what a model that sleeps has left, and give way to its wake") {
  pool_town t;
  t.well(t.load("b", t.other(3000)));
  const auto a = t.pages_mb("a");
  REQUIRE(a < 4096);
  t.well(t.sleep("b"));
  t.pass(2s);
  CHECK(t.pages_mb("a") == 4096);
  t.balances();
  const auto job = t.ask_of("a", 1000);
  t.well(t.wake("b"));
  CHECK(t.pages_mb("a") < 4096);
  CHECK(t.pages_mb("a") >= a - 128);
  t.balances();
  t.answers("b");
  CHECK(text_of(*job) == sim_text(3, 1000));
}

TEST_CASE("pools: where a wake fails they have their pages again") {
  pool_town t;
  t.well(t.load("b", t.other(3000, ",fault=wake_room@1")));
  t.well(t.sleep("b"));
  t.pass(2s);
  const auto before = t.service->all_models().devices.at(0).models;
  CHECK(t.ill(t.wake("b")).code == errc::does_not_fit);
  CHECK(t.pages_mb("a") == 4096);
  CHECK(t.service->all_models().devices.at(0).models == before);
  t.well(t.wake("b"));
  t.balances();
}

TEST_CASE("pools: those that grow again stay in equal bytes, up to what is of use") {
  pool_town t("", 12'000);
  t.well(t.load("b", t.other(2000)));
  t.well(t.load("c", t.other(2000)));
  t.well(t.unload("c"));
  t.pass(5s);
  t.balances();
  CHECK(t.taken_mb() <= 12'000);
  CHECK(12'000 - t.taken_mb() < 64);  // not a step is left
  const auto a = t.pages_mb("a"), b = t.pages_mb("b");
  CHECK(std::max(a, b) - std::min(a, b) <= 1024);
}

TEST_CASE("pools: a request that waits for a model gets room from pools before any model leaves") {
  auto o = pool_town::options("", 12'000);
  o.known_models.push_back({"b", pooled + std::string(",mb=5000,load=300")});
  o.models.push_back({"idle", pooled + std::string(",mb=500")});
  o.demand.on = true;
  order_town t(5, std::move(o));
  t.pass(60s);  // `idle` rests
  auto r = ask("hello", 40, 9);
  r.model = "b";
  const auto job = t.send(std::move(r));
  t.settle();
  CHECK(text_of(*job) == sim_text(9, 40));
  CHECK(t.state("idle") == model_state::ready);
  CHECK(t.state("a") == model_state::ready);
  CHECK(t.status("a").gave_way + t.status("idle").gave_way > 0);
}

TEST_CASE("pools: an order that comes while one grows waits for that growth alone") {
  pool_town t;
  t.well(t.load("b", t.other(3000)));
  t.well(t.unload("b"));
  for (int i = 0; i < 10; ++i) {
    t.well(t.load("b", t.other(3000)));
    t.pass(std::chrono::microseconds(100 * i));
    t.well(t.unload("b"));
  }
  t.pass(2s);
  CHECK(t.pages_mb("a") == 4096);
  t.balances();
}

}  // namespace weir::tests::model_pools_test
