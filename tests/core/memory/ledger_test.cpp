#include "core/memory/ledger.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/support/seed.h"

namespace weir::tests::ledger_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

constexpr std::uint64_t mb = 1u << 20, gb = 1u << 30;

__extension__ using wide = unsigned __int128;

wide sum(const memory_lines& l) { return wide{l.weights} + l.workspaces + l.runtime + l.staging + l.pages; }

memory_lines random_lines(std::mt19937_64& r, unsigned bits) {
  const auto n = [&] { return r() >> (64 - 1 - r() % bits); };
  return {n(), n(), n(), n(), n()};
}

}  // namespace

TEST_CASE(
    "ledger: random grants are given exactly where their sum fits, and a release restores the account") {
  std::mt19937_64 r(drawn_seed(71));
  std::uint64_t granted = 0, refused = 0, woke = 0, kept_asleep = 0;
  for (int round = 0; round < 10'000; ++round) {
    const unsigned bits = round % 2 ? 63 : 20;  // half of the rounds have numbers whose sums overflow
    device_share d{"cuda:0", (r() >> (63 - bits)) | 1};
    d.outside = r() % (d.total / 4 + 1);
    d.context = r() % (d.total / 8 + 1);
    d.reserve = r() % (d.total / 8 + 1);
    ledger l(d);
    wide taken = wide{d.outside} + d.context + d.reserve;
    std::vector<std::pair<ledger::grant_id, memory_lines>> held;
    for (int i = 0; i < 8; ++i) {
      if (!held.empty() && r() % 4 == 0) {  // one sleeps, and wakes again unless another one took its room
        const auto& [id, lines] = held[r() % held.size()];
        const wide freed = wide{lines.weights} + lines.pages;
        const std::uint64_t free = l.free();
        l.sleep(id);
        REQUIRE(l.free() == free + freed);
        REQUIRE(bytes_of(l.taken_lines()) == l.taken());
        const auto other = l.grant("o", {.weights = r() % (l.free() / 2 + 1)}).value();
        const bool fits = freed <= l.free();
        const auto woken = l.wake(id);
        REQUIRE(woken.has_value() == fits);
        if (!fits) REQUIRE(woken.error().code == errc::does_not_fit);
        l.release(other);
        REQUIRE(l.wake(id).has_value());
        REQUIRE(l.wake(id).has_value());  // it is awake
        REQUIRE(l.free() == free);
        (fits ? woke : kept_asleep) += 1;
      }
      if (!held.empty() && r() % 4 == 0) {
        const std::size_t at = r() % held.size();
        taken -= sum(held[at].second);
        l.release(held[at].first);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
      }
      const auto lines = random_lines(r, bits);
      const auto before = l.entries();
      const std::uint64_t free = l.free();
      REQUIRE(wide{d.total} - taken == free);
      REQUIRE(bytes_of(l.taken_lines()) == l.taken());
      const auto id = l.grant("m", lines);
      REQUIRE(id.has_value() == (taken + sum(lines) <= d.total));
      if (!id) {
        ++refused;
        REQUIRE(id.error().code == errc::does_not_fit);
        REQUIRE(l.entries() == before);
        REQUIRE(l.free() == free);
        continue;
      }
      ++granted;
      if (r() % 2) {  // undone at once
        l.release(*id);
        REQUIRE(l.entries() == before);
        REQUIRE(l.device() == d);
        REQUIRE(l.free() == free);
        continue;
      }
      taken += sum(lines);
      held.emplace_back(*id, lines);
    }
  }
  CHECK(granted > 1000);
  CHECK(refused > 1000);
  CHECK(woke > 100);
  CHECK(kept_asleep > 100);
}

TEST_CASE("ledger: a refusal names the model, the device, the line, the missing bytes and the free ones") {
  ledger l({"cuda:1", 10'000, 500, 300, 200});
  REQUIRE(l.grant("first", {.weights = 5'000}).has_value());
  CHECK(l.free() == 4'000);
  CHECK_THAT(l.grant("chat", {.weights = 3'000, .workspaces = 900, .pages = 700}).error().message,
             Contains("chat: no room on cuda:1 for its pages: 600 bytes are missing, 4000 are free"));
  CHECK_THAT(l.grant("chat", {.weights = 4'001}).error().message, Contains("for its weights: 1 bytes"));
  CHECK(l.grant("chat", {.weights = 4'000}).has_value());
  CHECK(l.free() == 0);
  l.release(77);  // nobody's
  CHECK(l.entries().size() == 2);
}

TEST_CASE("ledger: a device of unknown size grants everything, and finds no drift") {
  ledger l({"sim"});
  const memory_lines huge{~0ull, ~0ull, ~0ull, ~0ull, ~0ull};
  const auto id = l.grant("a", huge).value();
  CHECK(l.grant("b", huge).has_value());
  CHECK(l.free() == ~0ull);
  CHECK_FALSE(l.settle(id, {}, 0));
}

TEST_CASE("ledger: what a measurement finds beside the account goes outside where it is much") {
  const device_share d{"cuda:0", 80 * gb, gb, gb, gb};
  const memory_lines predicted{.weights = 16 * gb, .workspaces = gb, .pages = 40 * gb};
  ledger l(d);
  const auto id = l.grant("chat", predicted).value();
  auto measured = predicted;
  measured.runtime = 100 * mb;
  // total, less outside, context and what was measured
  const std::uint64_t expected = 78 * gb - bytes_of(measured), slack = 80 * gb / 50;

  CHECK_FALSE(l.settle(id, measured, expected - slack));
  CHECK(l.device() == d);
  CHECK(l.entries().at(id).predicted == predicted);
  CHECK(l.taken() == bytes_of(measured));

  const auto less = l.settle(id, measured, expected - slack - 1);
  REQUIRE(less);
  CHECK(less->predicted_free == expected);
  CHECK(less->measured_free == expected - slack - 1);
  CHECK(l.device().outside == gb + slack + 1);
  CHECK_FALSE(l.settle(id, measured, expected - slack - 1));  // it is believed from now on

  REQUIRE(l.settle(id, measured, expected + 10 * gb));  // others have gone
  CHECK(l.device().outside == 0);
  l.release(id);
  CHECK(l.free() == 78 * gb);
}

TEST_CASE("ledger: on a small device a drift is at least 256 MiB") {
  ledger l({"cuda:0", 4 * gb});
  const auto id = l.grant("m", {.weights = gb}).value();
  CHECK_FALSE(l.settle(id, {.weights = gb}, 3 * gb - 256 * mb));
  CHECK(l.settle(id, {.weights = gb}, 3 * gb - 256 * mb - 1));
}

}  // namespace weir::tests::ledger_test
