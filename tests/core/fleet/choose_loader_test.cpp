// Which worker loads a model that nobody has ready.
#include "core/fleet/choose_loader.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace weir::tests::choose_loader_test {
namespace {

using core::fleet::choose_loader;
using core::fleet::load_place;
using stand = load_place::stand;

constexpr std::uint64_t gb = std::uint64_t{1} << 30;

std::string chosen(const std::vector<load_place>& all, std::uint64_t bytes, std::string_view model = "m") {
  const auto i = choose_loader(all, model, bytes);
  return i ? std::string(all.at(*i).worker) : std::string();
}

load_place at(std::string_view worker, std::uint64_t free, std::uint64_t resting = 0, std::uint32_t jobs = 0,
              stand now = stand::absent) {
  return {worker, now, free, resting, jobs};
}

}  // namespace

TEST_CASE("nobody is chosen of nobody") { CHECK_FALSE(choose_loader({}, "m", gb).has_value()); }

TEST_CASE(
    "a worker that loads the model comes first, then one with a wish for it, then one where it sleeps") {
  const auto loading = at("loading", 0, 0, 90, stand::loading),
             wished = at("wished", 0, 0, 95, stand::wished), asleep = at("asleep", 0, 0, 90, stand::asleep),
             fits = at("fits", 5 * gb), rests = at("rests", gb, 4 * gb), busy = at("busy", gb, gb, 1);
  std::vector<load_place> all{busy, rests, fits, asleep, wished, loading};
  for (const char* best : {"loading", "wished", "asleep", "fits", "rests", "busy"}) {
    CHECK(chosen(all, 5 * gb) == best);
    all.pop_back();
  }
}

TEST_CASE("of workers where it fits the one with most free memory is chosen") {
  CHECK(chosen({at("a", 6 * gb), at("b", 9 * gb), at("c", 7 * gb)}, 5 * gb) == "b");
}

TEST_CASE("of workers where models that rest have to leave, the one where the least has to") {
  CHECK(chosen({at("a", gb, 20 * gb), at("b", 3 * gb, 3 * gb), at("c", 2 * gb, 9 * gb)}, 5 * gb) == "b");
  CHECK(chosen({at("a", gb, 20 * gb), at("b", 3 * gb, gb)}, 5 * gb) == "a");  // b's are not enough
}

TEST_CASE("of workers whose models are busy the one with the fewest jobs is chosen") {
  CHECK(chosen({at("a", 0, 0, 7), at("b", 0, 0, 3), at("c", 0, 0, 5)}, gb) == "b");
}

TEST_CASE("what is not known keeps no worker out") {
  CHECK(chosen({at("a", gb), at("b", 2 * gb)}, 0) == "b");
  load_place silent;
  silent.worker = "silent";
  CHECK(chosen({silent}, gb) == "silent");
  CHECK(chosen({silent, at("full", 0, 0, 0)}, gb) == "silent");
}

TEST_CASE("equal workers are chosen alike by all, whatever their order, and models spread over them") {
  const std::vector<std::string> names{"w1", "w2", "w3", "w4"};
  std::vector<load_place> all;
  for (const auto& n : names) all.push_back(at(n, 8 * gb));
  std::map<std::string, int> of;
  std::mt19937 random(1);
  for (int m = 0; m < 200; ++m) {
    const auto model = "model" + std::to_string(m);
    const auto first = chosen(all, gb, model);
    std::shuffle(all.begin(), all.end(), random);
    CHECK(chosen(all, gb, model) == first);
    ++of[first];
  }
  for (const auto& n : names) CHECK(of[n] >= 20);
}

}  // namespace weir::tests::choose_loader_test
