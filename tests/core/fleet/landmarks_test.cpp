// What gateways are told of prefix caches.
#include "core/fleet/landmarks.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "core/cache/page_name.h"
#include "core/fleet/frame_kind.h"
#include "tests/support/seed.h"

namespace weir::tests::landmarks_test {
namespace {

using namespace weir::core;
using namespace weir::core::fleet;

const std::string worker = "wwwwwwww22222222";

landmark_list some(std::mt19937_64& random, std::size_t most) {
  landmark_list out(random() % (most + 1));
  for (auto& name : out) name = random() % 200;
  return sorted_landmarks(std::move(out));
}

std::vector<token_id> prompt_of(std::size_t tokens) {
  std::vector<token_id> out(tokens);
  for (std::size_t i = 0; i < tokens; ++i) out[i] = static_cast<token_id>(i * 31 % 1000);
  return out;
}

}  // namespace

TEST_CASE("landmarks: a prompt has the names of its full pages at depths 1, 2, 4 and so on") {
  const auto ids = prompt_of(9 * 64 + 5);
  const auto all = landmarks_of(ids, "salt", "q8");
  REQUIRE(all.size() == 4);
  page_name name = root_name("salt", "q8");
  for (std::size_t depth = 1, at = 0; depth <= 9; ++depth) {
    name = name_of(name, std::span(ids).subspan((depth - 1) * 64).first<64>());
    if (depth == 1 || depth == 2 || depth == 4 || depth == 8) CHECK(all[at++] == name.hi);
  }
  CHECK(landmarks_of(prompt_of(63), "", "").empty());
  CHECK(landmarks_of(prompt_of(64), "", "").size() == 1);
  CHECK(landmarks_of(ids, "other", "q8") != all);
  CHECK(landmarks_of(ids, "salt", "bf16") != all);
}

TEST_CASE("landmarks: the deepest one that an engine has says what it knows of a prompt") {
  const auto all = landmarks_of(prompt_of(9 * 64), "", "");
  CHECK(known_tokens(all, {}) == 0);
  CHECK(known_tokens(all, sorted_landmarks({all[0], 5})) == 64);
  CHECK(known_tokens(all, sorted_landmarks({all[0], all[1], all[2]})) == 256);
  CHECK(known_tokens(all, sorted_landmarks({all[3]})) == 512);
  CHECK(known_tokens({}, all) == 0);
}

TEST_CASE("landmarks: changes make one list of another, whatever was lost on the way") {
  std::mt19937_64 random(drawn_seed(1));
  known_landmarks known;
  landmark_list told;
  std::uint64_t number = 0;
  int passed_over = 0;
  for (int round = 0; round < 2000; ++round) {
    auto next = some(random, 100);
    landmark_news n;
    if (random() % 10 == 0) {
      n.came = next;
    } else {
      n = change_of(told, next);
      n.before = number;
    }
    if (number == 0) n = {worker, 0, 0, 0, next, {}};
    n.worker = worker;
    n.now = ++number;
    told = std::move(next);
    const auto came = read_landmarks(frame_of(n));
    REQUIRE(came == n);
    if (random() % 20 == 0) continue;  // it was lost
    const bool fits = n.before == 0 || n.before == known.number;
    REQUIRE(known.take(*came) == fits);
    passed_over += !fits;
    if (fits) {
      REQUIRE(known.all == told);
      REQUIRE(known.number == number);
    }
  }
  CHECK(passed_over > 20);
}

TEST_CASE("landmarks: of too many the least stay, and a frame has no more") {
  std::mt19937_64 random(drawn_seed(2));
  landmark_list names(3 * most_landmarks);
  for (auto& name : names) name = random();
  names.insert(names.end(), names.begin(), names.begin() + 1000);  // some twice
  auto expected = names;
  std::ranges::sort(expected);
  expected.resize(most_landmarks);
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  const auto least = sorted_landmarks(names);
  CHECK(least == expected);
  landmark_news n{worker, 1, 0, 1, least, {}};
  const auto frame = frame_of(n);
  CHECK(frame.size() < (std::size_t{8} * most_landmarks + 64));
  CHECK(read_landmarks(frame) == n);
  landmark_list more;
  for (std::uint64_t i = 0; i <= most_landmarks; ++i) more.push_back(i);
  n.came = more;
  CHECK_FALSE(read_landmarks(frame_of(n)).has_value());
  known_landmarks known;
  CHECK_FALSE(known.take(n));
}

TEST_CASE("landmarks: a frame that is cut or out of order is none") {
  const landmark_news n{worker, 1, 3, 4, {1, 5, 9}, {2, 7}};
  const auto frame = frame_of(n);
  for (std::size_t size = 0; size < frame.size(); ++size)
    REQUIRE_FALSE(read_landmarks(std::string_view(frame).substr(0, size)).has_value());
  CHECK(read_landmarks(frame + "later builds' fields") == n);
  const auto refused = [](landmark_news wrong) { return !read_landmarks(frame_of(wrong)).has_value(); };
  CHECK(refused({worker, 1, 3, 4, {5, 1}, {}}));
  CHECK(refused({worker, 1, 3, 4, {5, 5}, {}}));
  CHECK(refused({worker, 1, 3, 4, {}, {9, 8}}));
  CHECK(refused({worker, 1, 0, 4, {1}, {2}}));  // all of it, and something gone
  CHECK(refused({worker, 1, 3, 0, {1}, {}}));
  CHECK(refused({"no name", 1, 3, 4, {1}, {}}));
}

}  // namespace weir::tests::landmarks_test
