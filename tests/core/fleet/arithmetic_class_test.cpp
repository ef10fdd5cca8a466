// Classes of arithmetic: what makes them different, that they are the same for ever, and that a job which
// moves goes to its own.
#include "core/fleet/arithmetic_class.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "core/fingerprint.h"
#include "core/fleet/fleet_board.h"
#include "core/fleet/pick_class.h"
#include "tests/support/seed.h"

namespace weir::tests::arithmetic_class_test {
namespace {

using namespace core::fleet;

arithmetic_facts some() { return {0x1234, "cpu (avx512, amx-bf16)", "bf16", "f32", false}; }

}  // namespace

// Workers of different builds compare them: a change here is a change of every class.
TEST_CASE("a class and a fingerprint are the same for ever") {
  core::fingerprint f;
  CHECK(f.value() == 0x9e3779b97f4a7c15u);
  f.add(std::string_view());
  f.add(std::string_view("a fleet of workers"));
  f.add(std::uint64_t{7});
  CHECK(f.value() == 0xc333a1db1c76f1ccu);
  CHECK(class_text(class_of(some(), "1.2.3")) == "b060d5327f7e1e11");
}

TEST_CASE("whatever decides the bits of tokens makes another class") {
  std::set<std::uint64_t> all{class_of(some(), "1.2.3"), class_of(some(), "1.2.4")};
  auto f = some();
  f.weights = 0x1235;
  all.insert(class_of(f, "1.2.3"));
  f = some();
  f.backend = "cpu (avx512)";
  all.insert(class_of(f, "1.2.3"));
  f = some();
  f.kv_type = "f16";
  all.insert(class_of(f, "1.2.3"));
  f = some();
  f.activations = "int8";
  all.insert(class_of(f, "1.2.3"));
  f = some();
  f.deterministic = true;
  all.insert(class_of(f, "1.2.3"));
  CHECK(all.size() == 7);
  CHECK(all.count(0) == 0);
  CHECK(class_of(some(), "1.2.3") == class_of(some(), "1.2.3"));
  f = some();
  f.weights = 0;
  CHECK(class_of(f, "1.2.3") == 0);
}

TEST_CASE("fingerprints keep the order and the lengths of what they are of") {
  const auto of = [](std::initializer_list<std::string_view> all) {
    core::fingerprint f;
    for (const auto s : all) f.add(s);
    return f.value();
  };
  const std::set<std::uint64_t> all{of({"a", "bc"}), of({"ab", "c"}), of({"abc"}),      of({"bc", "a"}),
                                    of({"abc", ""}), of({"", "abc"}), of({"abcdefgh"}), of({"abcdefgh", ""})};
  CHECK(all.size() == 8);
}

TEST_CASE("a class is written as 16 digits and read again, and nothing else is one") {
  CHECK(class_text(0).empty());
  CHECK(class_text(0xfeed) == "000000000000feed");
  CHECK(parse_class("000000000000feed") == 0xfeed);
  for (const char* none :
       {"", "feed", "000000000000feedx", "000000000000fee-", "+00000000000feed", "0x0000000000feed"})
    CHECK(parse_class(none) == 0);
  CHECK(backend_without_number("cuda:12 (NVIDIA L4)") == "cuda (NVIDIA L4)");
  CHECK(backend_without_number("cuda:0") == "cuda");
  CHECK(backend_without_number("cpu (avx2)") == "cpu (avx2)");
}

TEST_CASE("a board says the class of each engine, and that of an earlier build says none") {
  fleet_board b;
  b.worker = "wwwwwwww22222222";
  b.models.push_back({.name = "chat", .arithmetic = 0xf000'0000'0000'0001});
  const auto text = json_of(b);
  CHECK(text.find(R"("class":"f000000000000001")") != text.npos);
  CHECK(read_board(text)->models.front().arithmetic == 0xf000'0000'0000'0001);
  for (const char* earlier :
       {R"({"name":"chat","class":0})", R"({"name":"chat"})", R"({"name":"chat","class":12})"}) {
    const auto read = read_board(R"({"v":1,"o":"wwwwwwww22222222","state":"ready","models":[)" +
                                 std::string(earlier) + "]}");
    REQUIRE(read.has_value());
    CHECK(read->models.front().arithmetic == 0);
  }
}

TEST_CASE("pick_in_class: places of the job's class come first, and each group as pick() orders it") {
  std::mt19937_64 random(drawn_seed(1));
  for (int round = 0; round < 500; ++round) {
    std::vector<core::place_load> places(1 + random() % 9);
    std::vector<std::uint64_t> classes;
    for (auto& p : places) {
      p.name = random();
      p.jobs = static_cast<std::uint32_t>(random() % 20);
      p.seats = 8;
      p.prompt_tokens_per_s = static_cast<double>(random() % 50'000);
      classes.push_back(random() % 3);
    }
    const std::uint64_t wanted = 1 + random() % 2, beginning = random();
    const auto order = core::pick_in_class(places, classes, wanted, false, 100, beginning);
    auto sorted = order;
    std::ranges::sort(sorted);
    REQUIRE(sorted.size() == places.size());
    for (std::uint32_t i = 0; i < sorted.size(); ++i) REQUIRE(sorted[i] == i);
    CHECK(std::ranges::is_partitioned(order, [&](auto i) { return classes[i] == wanted; }));
    const auto own = static_cast<std::size_t>(std::ranges::count(classes, wanted));
    const auto strict = core::pick_in_class(places, classes, wanted, true, 100, beginning);
    CHECK(strict == std::vector(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(own)));
    if (own == places.size()) CHECK(order == core::pick(places, 1, 100, beginning));
    CHECK(core::pick_in_class(places, classes, 0, true, 100, beginning) ==
          core::pick(places, 1, 100, beginning));
  }
}

}  // namespace weir::tests::arithmetic_class_test
