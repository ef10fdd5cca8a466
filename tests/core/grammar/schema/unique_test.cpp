// uniqueItems where items are one of a few scalars.
#include <algorithm>
#include <random>
#include <set>

#include "tests/core/grammar/grammar_kit.h"

namespace weir::tests::unique_test {

using namespace weir::core::grammar;

namespace {

std::string joined(const std::vector<std::string>& items, const char* between = ",") {
  std::string out = "[";
  for (std::size_t i = 0; i < items.size(); ++i) out += (i > 0 ? between : "") + items[i];
  return out + "]";
}

// Whether no item is there twice.
bool different(const std::vector<std::string>& items) {
  return std::set<std::string>(items.begin(), items.end()).size() == items.size();
}

}  // namespace

TEST_CASE("schema: lists of different items, in any order and number", "[grammar]") {
  const struct {
    const char* items;
    std::vector<std::string> values;
  } cases[] = {
      {R"({"enum":["a","b","ab","abc",1,12,2.5,null]})",
       {"\"a\"", "\"b\"", "\"ab\"", "\"abc\"", "1", "12", "2.5", "null"}},
      {R"({"type":["boolean","null"]})", {"true", "false", "null"}},
      {R"({"type":"integer","minimum":-2,"exclusiveMaximum":12})",
       {"-2", "-1", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"}},
      {R"({"type":"integer","minimum":0.5,"maximum":30,"multipleOf":3,"not":{"const":9}})",
       {"3", "6", "12", "15", "18", "21", "24", "27", "30"}},
      {R"({"anyOf":[{"const":1.0},{"enum":[1,2]},{"const":"x"}]})", {"1", "2", "\"x\""}},
  };
  std::mt19937 random(21);
  for (const auto& c : cases) {
    const auto n = static_cast<std::uint32_t>(c.values.size());
    const std::uint32_t min = random() % (n + 1), max = min + random() % (n + 2 - min);
    const auto schema =
        fmt::format(R"({{"type":"array","uniqueItems":true,"items":{},"minItems":{},"maxItems":{}}})",
                    c.items, min, std::max(max, 2u));
    INFO(schema);
    const schema_under_test s(schema, true);
    if (s.refusal) FAIL_CHECK(s.refusal->message);
    if (!s.constraint) continue;
    for (int round = 0; round < 300; ++round) {
      std::vector<std::string> items = c.values;
      std::ranges::shuffle(items, random);
      items.resize(random() % (n + 1));
      if (random() % 3 == 0) items.push_back(c.values[random() % n]);
      const std::string text = joined(items, random() % 2 == 0 ? "," : ", ");
      INFO(text);
      const bool counted = items.size() >= min && items.size() <= std::max(max, 2u);
      CHECK(s.accepts(text) == (counted && different(items)));
    }
  }
}

TEST_CASE("schema: an item that was there is refused where no other begins so", "[grammar]") {
  const schema_under_test s(R"({"type":"array","uniqueItems":true,"items":{"enum":["aa","ab","ba",1,12]}})",
                            true);
  REQUIRE(s.constraint);
  CHECK(s.refused_at(R"(["aa","aa")") == 8);
  CHECK(s.refused_at(R"(["ba","ba")") == 7);
  CHECK(s.refused_at("[1,1]") == 4);  // 12 begins like it
  CHECK(s.refused_at("[1,12,1") == 6);
  CHECK(s.refused_at(R"(["aa","ab","ba",1,12,)") == 20);  // none is left
  CHECK_FALSE(s.refused_at("[]"));
  CHECK_FALSE(s.refused_at("[\n  12,\n  1\n]"));
}

TEST_CASE("schema: 64 different items may all be there, 65 values are too many", "[grammar]") {
  std::vector<std::string> all;
  for (int i = 0; i < 64; ++i) all.push_back(std::to_string(i * i));
  const auto schema = [](const std::vector<std::string>& values) {
    return R"({"type":"array","uniqueItems":true,"minItems":60,"items":{"enum":)" + joined(values) + "}}";
  };
  const schema_under_test s(schema(all), true);
  REQUIRE(s.constraint);
  std::mt19937 random(22);
  std::ranges::shuffle(all, random);
  CHECK(s.accepts(joined(all)));
  auto once_more = all;
  once_more[63] = all[5];
  CHECK_FALSE(s.accepts(joined(once_more)));
  all.push_back("0.5");
  const schema_under_test more(schema(all), true);
  REQUIRE(more.refusal);
  CHECK(more.refusal->message.find("at most 64 scalars") != std::string::npos);
}

TEST_CASE("schema: other unique items are not supported, and too few values satisfy nothing", "[grammar]") {
  for (const char* schema : {
           R"({"type":"array","uniqueItems":true,"items":{"type":"string"}})",
           R"({"type":"array","uniqueItems":true,"items":{"enum":[[1],2]}})",
           R"({"type":"array","uniqueItems":true,"prefixItems":[{"const":1}],"items":{"const":2}})",
           R"({"type":"array","uniqueItems":true,"items":{"type":"boolean"},"contains":{"const":true}})",
       }) {
    INFO(schema);
    const schema_under_test strict(schema, true), relaxed(schema);
    CHECK(strict.refusal);
    CHECK(relaxed.warnings.size() == 1);
  }
  CHECK(schema_under_test(R"({"type":"array","uniqueItems":true,"minItems":3,"items":{"type":"boolean"}})")
            .refusal);
  const schema_under_test one(R"({"type":"array","uniqueItems":true,"maxItems":1})", true);
  CHECK(one.accepts("[{}]"));
}

TEST_CASE("schema: masks of lists of different items are exact, and a fresh constraint knows them",
          "[grammar]") {
  constraint_text c;
  c.what = constraint_text::kind::json_schema;
  c.strict = true;
  c.text =
      R"({"type":"array","uniqueItems":true,"minItems":3,"items":{"enum":["red","green","blue","grey",1,10]}})";
  const auto over = *bound(c, bundled_views());
  std::mt19937 random(23);
  for (int i = 0; i < 30; ++i) CHECK(masks_are_exact(*over, random, 60));
  const auto fresh = over->fresh();
  CHECK_FALSE(refused_at(*fresh, R"(["grey",1,"red"])"));
  CHECK(refused_at(*fresh, R"(["grey",1,"grey"])"));
  CHECK(over->completion(over->step(over->start(), R"(["green",)")));
}

}  // namespace weir::tests::unique_test
