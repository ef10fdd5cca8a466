// The published schemas and instances of the data folder, byte by byte. core/grammar/schema.h documents which
// spellings of a value are generated, so a valid instance may be refused for its spelling. An invalid
// instance may never be accepted where `strict` was asked.
#include <fstream>
#include <map>

#include "tests/core/grammar/schema/schema_kit.h"
#include "tests/support/data.h"

namespace weir::tests::suite_test {

using namespace weir::core::grammar;

namespace {

struct score {
  unsigned passed = 0;         // judged as the data says
  unsigned refused = 0;        // tests of schemas that were refused by name
  unsigned refused_valid = 0;  // valid instances that the schema does not generate
  unsigned accepted_invalid = 0;
};

bool says(const json_tree& t, json_node_id object, std::string_view name) {
  const auto at = t.member(object, name);
  return at && t[*at].truth;
}

// Whether the verdict is this front end's choice (the order of members, formats that the data does not ask
// for), or an independent engine judges otherwise. Such tests are left out.
bool chosen(const json_tree& t, json_node_id group, json_node_id test) {
  const auto file = t.member(group, "file");
  return says(t, test, "order") || says(t, test, "needs_format") || t.member(test, "py") ||
         (file && t[*file].text == "format");
}

void judge(const json_tree& t, json_node_id group, json_node_id test, const schema_under_test& s,
           score& all) {
  const auto judged = t.member(test, "valid");
  if (t[*judged].kind != json_kind::boolean || chosen(t, group, test)) return;
  if (!s.constraint) {
    ++all.refused;
    return;
  }
  const bool valid = t[*judged].truth;
  const std::string text = compact(t, *t.member(test, "data"));
  if (s.accepts(text) == valid) {
    ++all.passed;
  } else if (valid) {
    ++all.refused_valid;
  } else {
    ++all.accepted_invalid;
    UNSCOPED_INFO("accepted: " << text << " by " << compact(t, *t.member(group, "schema")));
  }
}

score score_of(const std::filesystem::path& file, bool strict) {
  score all;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto group = read_json_tree(line, {.bytes = 1 << 22, .depth = 200});
    REQUIRE(group.has_value());
    const schema_under_test s(compact(*group, *group->member(json_tree::root, "schema")), strict);
    const auto tests = group->member(json_tree::root, "tests");
    for (json_node_id test : (*group)[*tests].items) judge(*group, json_tree::root, test, s, all);
  }
  return all;
}

// The least that each file has reached. A change may raise these and never lower them.
const std::map<std::string, score>& reached() {
  static const std::map<std::string, score> all{
#include "tests/core/grammar/schema/suite_reached.inc"
  };
  return all;
}

}  // namespace

TEST_CASE("schema: published suites are judged at least as well as before, and nothing invalid is accepted") {
  const auto folder = weir::tests::data_dir() / "schemas";
  if (!std::filesystem::exists(folder)) {
    WARN("no schemas below " << folder << ": set TEST_DATA_DIR");
    return;
  }
  for (const auto& [name, least] : reached()) {
    const score s = score_of(folder / name, true);
    CAPTURE(name, s.passed, s.refused, s.refused_valid, s.accepted_invalid);
    CHECK(s.passed >= least.passed);
    CHECK(s.refused_valid <= least.refused_valid);
    CHECK(s.accepted_invalid <= least.accepted_invalid);
  }
}

}  // namespace weir::tests::suite_test
