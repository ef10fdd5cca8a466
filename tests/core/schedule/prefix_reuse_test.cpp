#include "core/schedule/prefix_reuse.h"

#include <catch2/catch.hpp>

#include "tests/support/schedule_rig.h"

namespace weir::tests::prefix_reuse_test {

using namespace weir::core;

namespace {

struct rig {
  toy_model model;
  page_pool pool;
  std::vector<page_copy> copies;
  std::vector<std::unique_ptr<sequence>> all;

  explicit rig(std::uint32_t pages) : pool(pages) {}
  ~rig() {
    for (const auto& s : all) s->give_back(pool);
  }

  // A sequence in the batch whose prompt is the first `length` tokens of the text that `seed` gives.
  sequence& add(std::uint64_t seed, std::uint32_t length) {
    all.push_back(std::make_unique<sequence>(numbered_job(seed, length), model.info(), 4096));
    all.back()->enter(all.size(), {}, model.info().vocab_size);
    return *all.back();
  }
  // The same, with every row computed and every full page named.
  sequence& computed(std::uint64_t seed, std::uint32_t length) {
    sequence& s = add(seed, length);
    REQUIRE(s.pages.grow(pool, length));
    s.set_computed(length);
    name_pages(s, pool);
    return s;
  }
};

}  // namespace

TEST_CASE("prefix reuse: full pages that are computed get names, the rest does not") {
  rig r(8);
  const sequence& s = r.computed(1, 150);
  CHECK(s.named() == 2);
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(r.pool.names().holds(s.pages.all()[i]) == (i < 2));
}

TEST_CASE("prefix reuse: a sequence takes the named pages of its beginning, and learns what is missing") {
  rig r(8);
  const sequence& first = r.computed(1, 150);
  sequence& second = r.add(1, 200);
  const auto missing = share_pages(second, r.pool, true);
  REQUIRE(missing);
  CHECK(second.named() == 2);
  CHECK(second.computed() == 128);
  CHECK(second.cached() == 128);
  for (std::uint32_t i = 0; i < 2; ++i) {
    CHECK(second.pages.all()[i] == first.pages.all()[i]);
    CHECK(r.pool.references(first.pages.all()[i]) == 2);
  }
  sequence& third = r.add(1, 230);
  CHECK(share_pages(third, r.pool, true) == missing);  // both would compute the same page
}

TEST_CASE("prefix reuse: the last token is computed even where all its pages are there") {
  rig r(8);
  r.computed(1, 128);
  sequence& again = r.add(1, 128);
  CHECK_FALSE(share_pages(again, r.pool, true).has_value());
  CHECK(again.computed() == 64);
  REQUIRE(take_pages(again, r.pool, 0, r.copies));
  CHECK(again.computed() == 127);  // the copy of the second page, but for its last row
  REQUIRE(r.copies.size() == 1);
  CHECK(r.copies[0].to == again.pages.all()[1]);
}

TEST_CASE("prefix reuse: where the pool has not enough, nothing changes") {
  rig r(6);
  r.computed(1, 150);
  sequence& other = r.add(2, 150);
  share_pages(other, r.pool, true);
  CHECK_FALSE(take_pages(other, r.pool, 1, r.copies));  // three pages are left, and one is to be spared
  CHECK(other.pages.size() == 0);
  CHECK(r.copies.empty());
  CHECK(r.pool.used() == 3);
  CHECK(take_pages(other, r.pool, 0, r.copies));
  CHECK(other.pages.size() == 3);
}

TEST_CASE("prefix reuse: a page that two computed at once is kept once") {
  rig r(8);
  sequence& a = r.add(1, 70);
  sequence& b = r.add(1, 70);
  for (sequence* s : {&a, &b}) {
    REQUIRE(s->pages.grow(r.pool, 70));
    s->set_computed(70);
  }
  CHECK(r.pool.used() == 4);
  name_pages(a, r.pool);
  name_pages(b, r.pool);
  CHECK(a.pages.all()[0] == b.pages.all()[0]);
  CHECK(r.pool.used() == 3);
}

TEST_CASE("prefix reuse: salts keep equal prompts apart") {
  rig r(8);
  r.computed(1, 128);
  job j = numbered_job(1, 128);
  j.cache_salt = "another";
  r.all.push_back(std::make_unique<sequence>(std::move(j), r.model.info(), 4096));
  sequence& salted = *r.all.back();
  salted.enter(9, {}, r.model.info().vocab_size);
  CHECK(share_pages(salted, r.pool, true).has_value());
  CHECK(salted.computed() == 0);
}

}  // namespace weir::tests::prefix_reuse_test
