// The ledgers of a service's devices: what is promised before a load, and given back after it.
#include "actors/memory_book.h"

#include <catch2/catch.hpp>

#include <random>

#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::memory_book_test {

using namespace weir::actors;
using Catch::Matchers::Contains;

namespace {

constexpr std::uint64_t gib = 1u << 30;

owner_options on_device(const char* device) {
  owner_options o;
  o.device = device;
  o.max_batch = 64;
  return o;
}

// A simulated device with memory: models take what mb= says.
planned_device sim_with(std::uint64_t total) {
  planned_device d;
  d.name = "sim";
  d.total = total;
  return d;
}

model_spec sim_of(const std::string& name, std::uint64_t mb) {
  return {name, "sim:mb=" + std::to_string(mb)};
}

device_account account(const memory_book& b) { return b.accounts().at(0); }

}  // namespace

TEST_CASE(
    "memory book: models that share a device are promised pages, and a model alone takes what is free") {
  const auto o = on_device("cuda:0");
  const std::vector<model_spec> models{{"chat", "random:llama-3.1-8b"}, {"small", "random:llama-3.2-1b"}};
  memory_book shared(o, {"cuda:0"}, {assume_device("cuda:0", 80 * gib, o)});
  const auto loads = plan_loads(models, 1, 1);
  const auto both = shared.book(loads);
  REQUIRE(both.has_value());
  CHECK(both->order == std::vector<std::string>{"small", "chat"});
  for (const auto& m : models) {
    const auto& promise = both->of.at(m.name);
    REQUIRE(promise.pages.has_value());
    CHECK(promise.parts.at(0).lines.pages > 0);
  }
  CHECK(account(shared).models + account(shared).free + account(shared).context + o.reserve_bytes ==
        80 * gib);

  memory_book alone(o, {"cuda:0"}, {assume_device("cuda:0", 80 * gib, o)});
  const auto one = alone.book(std::span(loads).first(1));
  REQUIRE(one.has_value());
  CHECK_FALSE(one->of.at("chat").pages.has_value());
}

TEST_CASE("memory book: the copies of a model have the pages of the smaller device") {
  const auto o = on_device("cuda:0");
  const std::vector<model_spec> models{{"chat", "random:llama-3.1-8b"}, {"small", "random:llama-3.2-1b"}};
  memory_book book(o, {"cuda:0", "cuda:1"},
                   {assume_device("cuda:0", 80 * gib, o), assume_device("cuda:1", 40 * gib, o)});
  const auto loads = plan_loads(models, 2, 2);
  const auto plan = book.plan(loads, {}).value();
  const auto made = book.book(loads);
  REQUIRE(made.has_value());
  for (const auto& m : plan.models) CHECK(made->of.at(m.name).pages <= static_cast<std::uint32_t>(m.pages));
}

TEST_CASE("memory book: what does not fit is refused with the plan, and nothing is promised") {
  memory_book book(on_device("sim"), {"sim"}, {sim_with(10 * gib)});
  const load_step first{sim_of("a", 6 * 1024)}, second{sim_of("b", 5 * 1024)};
  auto a = book.book({&first, 1});
  REQUIRE(a.has_value());
  const auto b = book.book({&second, 1});
  REQUIRE(b.has_error());
  CHECK(b.error().fault.code == core::errc::does_not_fit);
  CHECK_THAT(b.error().fault.message, Contains("sim") && Contains("b"));
  CHECK_THAT(b.error().plan, Contains("\"fits\":false") && Contains("\"loaded\":6442450944"));
  CHECK(account(book).free == 4 * gib);
  CHECK(book.plan({&second, 1}, {"a"})->fits());  // once a has gone
  CHECK_FALSE(book.plan({&second, 1}, {})->fits());
  book.release(a->of.at("a"));
  CHECK(account(book).free == 10 * gib);
  CHECK(book.book({&second, 1}).has_value());
}

TEST_CASE("memory book: a measurement replaces the promise, and what it finds missing is believed") {
  memory_book book(on_device("sim"), {"sim"}, {sim_with(100 * gib)});
  const load_step first{sim_of("a", 10 * 1024)}, second{sim_of("b", 1024)};
  auto a = book.book({&first, 1}).value(), b = book.book({&second, 1}).value();
  model_place place;
  auto& use = place.memory;
  use.weights = 11 * gib;
  use.total = 100 * gib;
  use.free = 20 * gib;
  CHECK(book.settle(a.of.at("a"), 0, place) == "");  // b is still to come: what is free says nothing
  CHECK(account(book).models == 12 * gib);
  use.weights = gib;
  CHECK_THAT(book.settle(b.of.at("b"), 0, place), Contains("sim has 21"));
  CHECK(account(book).outside == 68 * gib);
  CHECK(account(book).free == 20 * gib);
}

TEST_CASE("memory book: promises that are taken back leave the accounts as they were, to the byte") {
  for (unsigned round = 0; round < rounds(200); ++round) {
    std::mt19937_64 random(drawn_seed(round));
    const auto total = (1 + random() % 64) * gib;
    memory_book book(on_device("sim"), {"sim"}, {sim_with(total)});
    std::vector<memory_promise> live;
    std::uint64_t sum = 0;
    for (int i = 0; i < 40; ++i) {
      if (!live.empty() && random() % 3 == 0) {
        const auto at = random() % live.size();
        sum -= live[at].parts.at(0).lines.weights;
        book.release(live[at]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        const auto bytes = (random() % (16 * 1024)) << 20;
        const load_step step{sim_of("m" + std::to_string(i), bytes >> 20)};
        auto made = book.book({&step, 1});
        REQUIRE(made.has_value() == (bytes <= total - sum));
        if (!made) continue;
        sum += bytes;
        live.push_back(std::move(made->of.begin()->second));
      }
      REQUIRE(account(book).models == sum);
      REQUIRE(account(book).free == total - sum);
    }
  }
}

TEST_CASE("memory book: host memory for sleep has a limit, and is refused by name where there is none") {
  memory_book none(on_device("sim"), {"sim"}, {sim_with(10 * gib)});
  memory_book book(on_device("sim"), {"sim"}, {sim_with(10 * gib)}, 5 * gib);
  memory_promise a, b;
  CHECK(none.hold_sleep(a, "a", 1).error().code == core::errc::not_supported);
  CHECK(none.hold_sleep(a, "a", 1).error().param == "level");
  REQUIRE(book.hold_sleep(a, "a", 3 * gib).has_value());
  CHECK(book.hold_sleep(b, "b", 2 * gib + 1).error().code == core::errc::does_not_fit);
  CHECK(book.sleep_account().taken == 3 * gib);
  REQUIRE(book.hold_sleep(b, "b", 2 * gib).has_value());
  CHECK(book.sleep_account().free() == 0);
  book.end_hold(a);
  book.end_hold(a);  // once is enough
  CHECK(book.sleep_account().free() == 3 * gib);
  REQUIRE(book.hold_sleep(b, "b", 2 * gib).has_value());  // it has that already
  b.copied = true;
  book.end_hold(b);  // the copy stays
  CHECK(book.sleep_account().taken == 2 * gib);
  book.release(b);
  CHECK(book.sleep_account().taken == 0);
}

TEST_CASE("memory book: a model that sleeps makes room, and wakes where nobody has taken it") {
  memory_book book(on_device("sim"), {"sim"}, {sim_with(10 * gib)}, 20 * gib);
  const load_step first{sim_of("a", 6 * 1024)}, second{sim_of("b", 8 * 1024)};
  auto a = book.book({&first, 1}).value().of.at("a");
  CHECK(book.freed_by_sleep("a", "sim") == 6 * gib);
  CHECK_FALSE(book.plan({&second, 1}, {})->fits());
  CHECK(book.plan({&second, 1}, {}, {"a"})->fits());
  book.sleep(a);
  CHECK(account(book).models == 0);
  CHECK(book.freed_by_sleep("a", "sim") == 0);
  CHECK_FALSE(book.lacks_to_wake(a, {}, {}).has_value());
  auto b = book.book({&second, 1}).value().of.at("b");
  const auto lacks = book.lacks_to_wake(a, {}, {});
  REQUIRE(lacks.has_value());
  CHECK(lacks->device == "sim");
  CHECK(lacks->bytes == 4 * gib);
  CHECK_FALSE(book.lacks_to_wake(a, {"b"}, {}).has_value());
  CHECK_FALSE(book.lacks_to_wake(a, {}, {"b"}).has_value());
  CHECK(book.wake(a).error().code == core::errc::does_not_fit);
  CHECK(account(book).models == 8 * gib);
  book.sleep(b);
  REQUIRE(book.wake(a).has_value());
  CHECK(account(book).models == 6 * gib);
  book.release(b);  // while it sleeps
  book.release(a);
  CHECK(account(book).free == 10 * gib);
}

TEST_CASE("memory book: of the places of a model all wake or none") {
  memory_book book(on_device("sim"), {"sim", "other"}, {sim_with(10 * gib), [] {
                     auto d = sim_with(4 * gib);
                     d.name = "other";
                     return d;
                   }()});
  const std::vector<load_step> both{{sim_of("a", 3 * 1024), 0, 0}, {sim_of("a", 3 * 1024), 1, 1}};
  const load_step second{sim_of("b", 2 * 1024), 0, 1};
  auto a = book.book(both).value().of.at("a");
  book.sleep(a);
  auto b = book.book({&second, 1}).value().of.at("b");
  const auto before = book.accounts();
  CHECK(book.wake(a).error().code == core::errc::does_not_fit);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(book.accounts()[i].models == before[i].models);
  book.release(b);
  CHECK(book.wake(a).has_value());
}

}  // namespace weir::tests::memory_book_test
