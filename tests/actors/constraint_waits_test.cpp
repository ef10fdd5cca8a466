// Requests of many keys with one constraint, of which one is compiled and all others wait.
#include "tests/actors/service_fixture.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::constraint_waits_test {

// One of them compiles it, and the others take no place meanwhile.
TEST_CASE("many keys that ask for one slow constraint at once all get it, also when the first one leaves") {
  const temporary_dir dir;  // of a model that has a token for every byte
  write_toy_directory(dir.path());
  service_fixture f("", [&](auto& o) {
    o.models = {{"m", dir.path().string()}};
    o.owner.device = "reference";
    o.owner.threads = 1;
    o.owner.kv_tokens = 4096;
    o.owner.grammar_time = {};  // no limit: a sanitizer takes its time
  });
  f.load();
  core::grammar::constraint_text slow{.what = core::grammar::constraint_text::kind::json_schema};
  slow.text = R"({"type":"object","required":["m1"],"properties":{"a":{})";
  for (int i = 0; i < 2'000; ++i) slow.text += fmt::format(R"(,"m{}":{{"maximum":{}}})", i, i);
  slow.text += "}}";
  std::vector<std::shared_ptr<job_stream>> all;
  for (std::uint64_t key = 1; key <= 20; ++key) {
    auto r = ask("x", 3);
    r.who.key = key;
    r.constraint = slow;
    all.push_back(f.submit(std::move(r)));
  }
  all.front()->cancel();
  for (const auto& s : all) f.run_to_end(s);
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i]->state() == phase::refused) FAIL(all[i]->refusal().message);
    CHECK(all[i]->state() == phase::done);
  }
}

}  // namespace weir::tests::constraint_waits_test
