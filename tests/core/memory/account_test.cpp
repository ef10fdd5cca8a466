#include "core/memory/account.h"

#include <catch2/catch.hpp>

namespace weir::tests::account_test {

TEST_CASE("memory account: holds add up, and what would pass the limit is refused and changes nothing") {
  const auto account = std::make_shared<core::memory_account>();
  account->set_limit(100);
  core::memory_hold a(account), b(account);
  CHECK(a.resize(60));
  CHECK(b.resize(40));
  CHECK(account->used() == 100);
  CHECK_FALSE(b.resize(41));
  CHECK(b.bytes() == 40);
  CHECK(account->used() == 100);
  CHECK(a.resize(10));
  CHECK(b.resize(90));
  CHECK(account->used() == 100);
}

TEST_CASE("memory account: what can no longer be refused is counted, and makes the next request a refusal") {
  const auto account = std::make_shared<core::memory_account>();
  account->set_limit(100);
  core::memory_hold running(account), next(account);
  running.force(150);
  CHECK(account->used() == 150);
  CHECK_FALSE(next.resize(1));
  CHECK(running.resize(120));  // less is never refused
  CHECK(account->used() == 120);
}

TEST_CASE("memory account: a hold gives back what it has, once, wherever it was moved") {
  const auto account = std::make_shared<core::memory_account>();
  {
    core::memory_hold a(account);
    CHECK(a.resize(10));
    core::memory_hold b(std::move(a));
    core::memory_hold c(account);
    CHECK(c.resize(5));
    c = std::move(b);
    CHECK(account->used() == 15);
  }
  CHECK(account->used() == 0);
}

TEST_CASE("memory account: without a limit everything has room, and a hold of no account holds nothing") {
  const auto account = std::make_shared<core::memory_account>();
  core::memory_hold a(account), none;
  CHECK(a.resize(std::uint64_t{1} << 50));
  CHECK(none.resize(1000));
  CHECK(none.bytes() == 0);
}

}  // namespace weir::tests::account_test
