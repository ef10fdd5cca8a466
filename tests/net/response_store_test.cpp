// The store of responses, under a clock that stands still.
#include "net/response_store.h"

#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>

#include "tests/support/manual_clock.h"

namespace weir::tests::response_store_test {

using namespace weir::net;

namespace {

constexpr actors::principal alice{1, 10}, bob{1, 11}, key_one{1, 0}, key_two{2, 0};

stored_ptr response(std::uint64_t number, const actors::principal& owner, std::string previous = {},
                    std::size_t bytes = 10) {
  auto r = std::make_shared<stored_response>();
  r->id = {0, number};
  r->owner = owner;
  r->previous = std::move(previous);
  r->items = "[]";
  r->object = std::string(bytes, 'x');
  return r;
}

std::string name(std::uint64_t number) { return "resp_" + core::job_id{0, number}.text(); }

struct rig {
  manual_clock time;
  std::shared_ptr<core::memory_account> account = std::make_shared<core::memory_account>();
  response_store store;
  explicit rig(std::uint64_t bytes = 1 << 20) : store(time, {std::chrono::seconds(100), bytes}, account) {}
};

std::vector<std::uint64_t> numbers(const std::vector<stored_ptr>& chain) {
  std::vector<std::uint64_t> out;
  for (const auto& r : chain) out.push_back(r->id.lo);
  return out;
}

}  // namespace

TEST_CASE("response store: a response is its owner's alone") {
  rig r;
  REQUIRE(r.store.keep(response(1, alice)));
  CHECK(r.store.find(name(1), alice));
  CHECK(r.store.find(core::job_id{0, 1}.text(), alice));
  CHECK(r.store.find(name(1), key_one));
  CHECK(!r.store.find(name(1), bob));
  CHECK(!r.store.find(name(1), key_two));
  CHECK(!r.store.find("resp_nonsense", alice));
  CHECK(r.store.chain(name(1), bob)->empty());
  CHECK(!r.store.forget(name(1), key_two));
  CHECK(r.store.forget(name(1), alice));
  CHECK(!r.store.forget(name(1), alice));
  CHECK(r.account->used() == 0);
}

TEST_CASE("response store: responses leave when their time is over") {
  rig r;
  r.store.keep(response(1, alice));
  r.time.advance(std::chrono::seconds(60));
  r.store.keep(response(2, alice));
  r.time.advance(std::chrono::seconds(40));
  CHECK(!r.store.find(name(1), alice));
  CHECK(r.store.size() == 2);
  r.store.tick();
  CHECK(r.store.size() == 1);
  CHECK(r.store.find(name(2), alice));
  CHECK(r.account->used() == r.store.bytes());
}

TEST_CASE("response store: what goes on with a response renews all before it") {
  rig r;
  r.store.keep(response(1, alice));
  r.store.keep(response(2, alice, name(1)));
  r.store.keep(response(3, alice, name(2)));
  r.time.advance(std::chrono::seconds(90));
  CHECK(numbers(*r.store.chain(name(2), alice)) == std::vector<std::uint64_t>{1, 2});
  r.time.advance(std::chrono::seconds(20));
  r.store.tick();
  CHECK(!r.store.find(name(3), alice));
  CHECK(numbers(*r.store.chain(name(2), alice)) == std::vector<std::uint64_t>{1, 2});
  REQUIRE(r.store.forget(name(1), alice));
  CHECK(r.store.find(name(2), alice));
  CHECK(r.store.chain(name(2), alice)->empty());
}

TEST_CASE("response store: a chain has an end") {
  rig r;
  for (std::uint64_t n = 1; n <= response_store::longest_chain + 1; ++n)
    r.store.keep(response(n, alice, n == 1 ? "" : name(n - 1)));
  CHECK(r.store.chain(name(response_store::longest_chain), alice)->size() == response_store::longest_chain);
  const auto over = r.store.chain(name(response_store::longest_chain + 1), alice);
  REQUIRE(!over.has_value());
  CHECK(over.error().param == "previous_response_id");
}

TEST_CASE("response store: the oldest leave where room is needed") {
  rig r(4000);
  for (std::uint64_t n = 1; n <= 4; ++n) CHECK(r.store.keep(response(n, alice, {}, 1000)));
  CHECK(r.store.bytes() <= 4000);
  CHECK(!r.store.find(name(1), alice));
  CHECK(r.store.find(name(4), alice));
  CHECK(!r.store.keep(response(5, alice, {}, 5000)));
  CHECK(r.store.find(name(4), alice));
  const auto before = r.store.bytes();
  CHECK(r.store.keep(response(4, alice, {}, 1000)));  // in its own place
  CHECK(r.store.bytes() == before);
}

TEST_CASE("response store: nothing is kept while clients use over half of their memory") {
  rig r;
  r.account->set_limit(100'000);
  CHECK(r.store.keep(response(1, alice)));
  core::memory_hold others(r.account);
  others.force(60'000);
  r.store.tick();
  CHECK(r.store.size() == 0);
  CHECK(!r.store.keep(response(2, alice)));
  CHECK(r.account->used() == 60'000);
}

TEST_CASE("response store: items are listed in pages") {
  const std::string items = R"([{"id":"a"},{"id":"b"},{"id":"c"}])";
  const auto list = [&](item_page page) {
    const auto text = list_of_items(items, page);
    REQUIRE(text.has_value());
    return boost::json::parse(*text);
  };
  item_page page;
  page.limit = 2;
  CHECK(list(page) == boost::json::parse(R"({"object":"list","data":[{"id":"c"},{"id":"b"}],"first_id":"c",
                                             "last_id":"b","has_more":true})"));
  page.after = "b";
  CHECK(list(page).at("data") == boost::json::parse(R"([{"id":"a"}])"));
  CHECK(list(page).at("has_more") == false);
  page.newest_first = false;
  page.after = "c";
  CHECK(list(page).at("first_id").is_null());
  page.after = "d";
  CHECK(list_of_items(items, page).error().param == "after");
  page.limit = 0;
  CHECK(list_of_items(items, page).error().param == "limit");
}

TEST_CASE("response store: a desk asks the owner and answers where it was asked") {
  manual_clock time;
  boost::asio::io_context owner, shard;
  const auto desk = std::make_shared<response_desk>(
      owner.get_executor(), std::make_unique<response_store>(time, store_limits(), nullptr));
  desk->tell([](response_store& s) { s.keep(response(1, alice)); });
  bool found = false;
  desk->ask(
      shard.get_executor(), [](response_store& s) { return s.find(name(1), alice); },
      [&](stored_ptr r) { found = r != nullptr; });
  shard.run();
  CHECK(!found);
  owner.run();
  shard.restart();
  shard.run();
  CHECK(found);
}

}  // namespace weir::tests::response_store_test
