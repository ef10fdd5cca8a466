#include "core/grammar/masks/token_mask.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

namespace weir::tests::token_mask_test {

using namespace weir::core::grammar;
using weir::core::token_id;

namespace {

constexpr std::uint32_t vocab_size = 10'007;

std::set<token_id> some_ids(std::mt19937& random, std::size_t n) {
  std::set<token_id> out;
  while (out.size() < n) out.insert(static_cast<token_id>(random() % vocab_size));
  return out;
}

std::shared_ptr<const token_mask> mask_of(const std::set<token_id>& ids) {
  token_mask out(vocab_size);
  for (const auto id : ids) out.set(id);
  out.finish();
  return std::make_shared<const token_mask>(std::move(out));
}

void check(const token_mask& mask, const std::set<token_id>& ids) {
  CHECK(mask.count() == ids.size());
  CHECK(mask.ids() == std::vector<token_id>(ids.begin(), ids.end()));
  bool same = true;
  for (token_id id = 0; id < static_cast<token_id>(vocab_size); ++id)
    same = same && mask.has(id) == (ids.count(id) != 0);
  CHECK(same);
  std::vector<std::uint32_t> row((vocab_size + 31) / 32 + 3, 0xFFFF'FFFF), expected(row.size(), 0);
  mask.write(row);
  for (const auto id : ids)
    expected[static_cast<std::uint32_t>(id) / 32] |= 1u << (static_cast<std::uint32_t>(id) % 32);
  CHECK(row == expected);
}

}  // namespace

TEST_CASE("a mask that shares others has the tokens of all of them, and its own", "[grammar]") {
  std::mt19937 random(3);
  constexpr std::size_t sizes[] = {0, 40, 600, 5'000};
  for (const auto first : sizes)
    for (const auto second : sizes)
      for (const auto own : {0u, 30u, 900u, 3'000u}) {
        INFO(first << ", " << second << ", " << own);
        const auto a = some_ids(random, first), b = some_ids(random, second), c = some_ids(random, own);
        auto all = a;
        all.insert(b.begin(), b.end());
        all.insert(c.begin(), c.end());
        token_mask mask(vocab_size);
        auto id = c.begin();
        for (std::size_t n = 0; n < own / 2; ++n) mask.set(*id++);
        mask.set_all(mask_of(a));
        mask.set_all(mask_of(b));
        for (; id != c.end(); ++id) mask.set(*id);
        mask.finish();
        check(mask, all);
      }
}

TEST_CASE("a mask that shares another needs few bytes of its own", "[grammar]") {
  std::mt19937 random(4);
  const auto base = mask_of(some_ids(random, 5'000));
  token_mask mask(vocab_size);
  mask.set_all(base);
  token_id other = 0;
  while (base->has(other)) ++other;
  mask.set(other);
  mask.finish();
  CHECK(mask.shared() == base.get());
  CHECK(mask.count() == 5'001);
  CHECK(mask.bytes() < 200);
}

}  // namespace weir::tests::token_mask_test
