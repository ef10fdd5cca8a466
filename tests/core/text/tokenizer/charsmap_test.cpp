#include "core/text/tokenizer/charsmap.h"

#include <catch2/catch.hpp>
#include <random>

#include "core/text/json_field.h"
#include "core/text/tokenizer/unicode.h"
#include "tests/support/charsmap_bytes.h"
#include "tests/support/seed.h"

namespace weir::tests::charsmap_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

std::string charsmap_complaint(const std::string& table) {
  try {
    const charsmap map(table, "table");
  } catch (const refusal& r) {
    return r.why.message;
  }
  return "";
}

}  // namespace

TEST_CASE("a table finds the longest and the shortest of its strings") {
  const charsmap map(charsmap_writer{{"a", "1"}, {"ab", "22"}, {"abcd", ""}, {"é", "e"}}.table(), "table");
  CHECK(map.longest("abcx").size == 2);
  CHECK(map.longest("abcx").by == "22");
  CHECK(map.longest("abcd").size == 4);
  CHECK(map.longest("abcd").by.empty());
  CHECK(map.shortest("abcd").by == "1");
  CHECK(map.longest("é").by == "e");
  CHECK(map.longest("\xC3").size == 0);
  CHECK(map.longest("x").size == 0);
  CHECK(map.longest("").size == 0);
  CHECK(map.longest(std::string_view("\0a", 2)).size == 0);
}

TEST_CASE("a table says how much longer it may make a text") {
  CHECK(charsmap(charsmap_writer{{"ab", "x"}}.table(), "").growth(1) == 1);
  const charsmap map(charsmap_writer{{"ab", "1 345"}, {"a", "12"}}.table(), "");
  CHECK(map.growth(1) == Approx(2.5));
  CHECK(map.growth(3) == Approx(3.5));  // (4 + 3) / 2
}

TEST_CASE("a table that leads astray is refused") {
  const charsmap_writer good{{"ab", "x"}, {"c", "yé"}};
  CHECK(charsmap_complaint(good.table()).empty());
  CHECK_THAT(charsmap_complaint(""), Contains("table: its first four bytes"));
  CHECK_THAT(charsmap_complaint("abc"), Contains("its first four bytes"));
  CHECK_THAT(charsmap_complaint(good.table().substr(0, 4 + good.units.size() * 4)),
             Contains("its first four bytes"));
  CHECK_THAT(charsmap_complaint(little_endian_word(6) + std::string(20, 'x')), Contains("its first four"));
  auto w = good;
  w.replacements = "x";
  CHECK_THAT(charsmap_complaint(w.table()), Contains("a replacement is outside"));
  w = good;
  w.replacements[3] = 'z';  // the second byte of é alone stays
  CHECK_THAT(charsmap_complaint(w.table()), Contains("a replacement is not UTF-8"));
  CHECK_THAT(charsmap_complaint(charsmap_writer{{"a", std::string(257, 'x')}}.table()),
             Contains("more than 256 bytes"));
  w = good;
  for (auto& unit : w.units) unit |= 1u << 31 >> 1;  // every node leads far away
  CHECK_THAT(charsmap_complaint(w.table()), Contains("outside"));
  CHECK_THAT(charsmap_complaint(std::string(charsmap::most_bytes + 1, 'x')), Contains("are the most"));
}

TEST_CASE("damaged tables are refused or keep within bounds") {
  std::mt19937_64 random(drawn_seed(31));
  for (int round = 0; round < 300; ++round) {
    charsmap_writer w{{"ab", "x"}, {"abc", "yy"}, {"\u00e9", "zé"}};
    for (int i = 0; i < 4; ++i) {
      const auto node = random() % w.units.size();
      w.units[node] = static_cast<std::uint32_t>(random());
      w.units[random() % w.units.size()] = w.units[random() % w.units.size()];
      // A node that leads back to another one.
      w.units[256 + 'a'] ^= static_cast<std::uint32_t>(random() % 8) << 18;
    }
    try {
      const charsmap map(w.table(), "table");
      for (int i = 0; i < 200; ++i) {
        std::string text;
        for (int k = 0; k < 8; ++k) text.push_back(static_cast<char>(random()));
        const auto found = map.longest(i % 2 ? "abc" + text : text);
        REQUIRE(found.size <= 11);
        REQUIRE(is_valid_utf8(found.by));
        if (found.size > 0)
          REQUIRE(static_cast<double>(found.by.size()) <=
                  map.growth(1) * static_cast<double>(found.size) + 1e-9);
      }
    } catch (const refusal&) {
    }
  }
}

}  // namespace weir::tests::charsmap_test
