#include "core/cache/page_table.h"

#include <catch2/catch.hpp>
#include <set>

namespace weir::tests::page_table_test {

using namespace weir::core;

TEST_CASE("a table grows by whole pages, or not at all") {
  page_pool pool(5);
  page_table a, b;
  CHECK(a.grow(pool, 1));
  CHECK(a.size() == 1);
  CHECK(a.grow(pool, page_tokens));
  CHECK(a.size() == 1);
  CHECK(a.grow(pool, page_tokens + 1));
  CHECK(b.grow(pool, 2 * page_tokens));
  CHECK(pool.free() == 1);
  CHECK_FALSE(b.grow(pool, 4 * page_tokens + 1));
  CHECK(b.size() == 2);
  CHECK(pool.free() == 1);
  std::set<page_id> all(a.all().begin(), a.all().end());
  all.insert(b.all().begin(), b.all().end());
  CHECK(all.size() == 4);
  a.release(pool);
  CHECK(pool.free() == 3);
  CHECK(b.grow(pool, 5 * page_tokens));
  CHECK(pool.free() == 0);
  b.release(pool);
  CHECK(pool.used() == 0);
}

TEST_CASE("a shared page is free once the last reference is gone") {
  page_pool pool(1);
  const page_id p = pool.take();
  pool.share(p);
  CHECK(pool.references(p) == 2);
  pool.release(p);
  CHECK(pool.free() == 0);
  pool.release(p);
  CHECK(pool.free() == 1);
}

TEST_CASE("the pages that hold some rows are the first ones") {
  page_pool pool(3);
  page_table t;
  REQUIRE(t.grow(pool, 3 * page_tokens));
  CHECK(t.holding(1).size() == 1);
  CHECK(t.holding(page_tokens).size() == 1);
  CHECK(t.holding(page_tokens + 1).size() == 2);
  CHECK(t.holding(page_tokens + 1)[1] == t.all()[1]);
  t.release(pool);
}

}  // namespace weir::tests::page_table_test
