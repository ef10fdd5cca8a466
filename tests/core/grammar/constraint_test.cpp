#include "core/grammar/constraint.h"

#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/grammar/compile.h"
#include "core/grammar/cursor.h"
#include "core/grammar/json_text.h"
#include "core/grammar/masks/job_mask.h"
#include "core/grammar/regex/regex.h"
#include "tests/core/grammar/each_text.h"
#include "tests/core/grammar/schema/schema_kit.h"
#include "tests/support/budget.h"
#include "tests/support/data.h"
#include "tests/support/earley.h"
#include "tests/support/seed.h"

namespace weir::tests::constraint_test {

using namespace weir::core::grammar;
using weir::core::token_id;
using weir::core::tokenizer;
using namespace std::string_literals;

namespace {

using random_engine = std::mt19937;

std::size_t below(random_engine& random, std::size_t n) { return random() % n; }

std::shared_ptr<terminal_views> views_of(const std::filesystem::path& dir) {
  auto t = weir::core::load_tokenizer(dir.string());
  REQUIRE(t.has_value());
  return std::make_shared<terminal_views>(std::make_shared<const token_trie>(*t));
}

std::shared_ptr<terminal_views> bundled() {
  static const auto views = views_of(weir::tests::bundled_models().front());
  return views;
}

std::shared_ptr<constraint> made(compiled c, std::shared_ptr<terminal_views> views = bundled()) {
  auto out = constraint::make(std::move(c), std::move(views));
  if (!out) FAIL(out.error().message);
  return *out;
}

compiled nothing_yet() { return {std::make_unique<rules>(), {}}; }

// Random rules over a, b, c: recursion of every kind, ambiguity, and parts that may be empty.
void random_rules(rules& r, random_engine& random) {
  std::vector<rule_id> all;
  for (std::size_t i = 0; i < 1 + below(random, 3); ++i) all.push_back(r.declare("r" + std::to_string(i)));
  const auto leaf = [&]() -> part_id {
    switch (below(random, 6)) {
      case 0:
        return rules::empty;
      case 1:
        return r.terminal(*parse_regex(r.regex(), "a*b"));
      case 2:
        return r.terminal(*parse_regex(r.regex(), "[ab]c?"));
      default:
        return r.literal(std::string(1, "abc"[below(random, 3)]));
    }
  };
  const auto part = [&](auto& self, int depth) -> part_id {
    const auto inner = [&] { return self(self, depth - 1); };
    switch (depth > 0 ? below(random, 7) : below(random, 2)) {
      case 0:
        return leaf();
      case 1:
        return r.call(all[below(random, all.size())]);
      case 2:
        return r.choice({inner(), inner()});
      case 3:
        return r.repeat(inner(), static_cast<std::uint32_t>(below(random, 3)), unbounded);
      case 4: {
        const auto min = static_cast<std::uint32_t>(below(random, 3));
        return r.repeat(inner(), min, min + static_cast<std::uint32_t>(below(random, 3)));
      }
      default:
        return r.sequence({inner(), inner()});
    }
  };
  for (const auto id : all) r.define(id, r.choice({leaf(), part(part, 3)}));
  r.set_root(r.call(all[0]));
}

}  // namespace

TEST_CASE("a text follows random rules exactly where Earley's recogniser says so", "[grammar]") {
  std::size_t in = 0, out = 0;
  for (unsigned i = 0; i < rounds(250); ++i) {
    INFO("case " << i);
    auto c = nothing_yet(), copy = nothing_yet();
    random_engine random(drawn_seed(1000 + i)), same(drawn_seed(1000 + i));
    random_rules(*c.grammar, random);
    random_rules(*copy.grammar, same);
    weir::tests::earley definition(*copy.grammar);
    auto over = constraint::make(std::move(c), bundled());
    bool any = false;
    each_text("abc", 4, [&](const std::string& text) {
      const bool follows = definition.accepts(text);
      any = any || follows;
      (follows ? in : out)++;
      if (!over) return;
      const auto at = (*over)->step((*over)->start(), text);
      REQUIRE(at != constraint::failed);
      INFO("\"" << text << "\"");
      CHECK((at != constraint::dead && (*over)->may_end(at)) == follows);
      if (at == constraint::dead) return;
      const auto rest = (*over)->completion(at);  // a text can still be completed
      REQUIRE(rest);
      CHECK((*over)->may_end((*over)->step(at, *rest)));
      if (rest->size() < 12) CHECK(definition.accepts(text + *rest));
    });
    if (!over) CHECK_FALSE(any);
  }
  CHECK(in > rounds(1'000));
  CHECK(out > rounds(1'000));
}

namespace {

using maker = compiled (*)();

compiled of_regex(const char* expression) {
  auto c = compile_regex(expression);
  REQUIRE(c.has_value());
  return std::move(*c);
}

const std::vector<std::pair<const char*, maker>> kinds{
    {"object", [] { return *compile_json_object(); }},
    {"compact object", [] { return *compile_json_object(json_space::compact); }},
    {"choice",
     [] {
       const std::vector<std::string> all{"yes", "no", "yesterday", "", "caf\xC3\xA9"};
       return *compile_choice(all);
     }},
    {"words", [] { return of_regex("(\\w+ )*\\w+[.!?]"); }},
    {"any text", [] { return of_regex("[^]*"); }},
    {"counted", [] { return of_regex("[a-z ]{3,17}!"); }},
    {"no double", [] { return of_regex("^(?!.*  )[a-z ]{1,200}$"); }},
    {"characters",
     [] {
       auto c = nothing_yet();
       auto& r = *c.grammar;
       const auto one = r.terminal(*parse_regex(r.regex(), "[^\"\\\\]"));
       r.set_root(r.sequence({r.literal("\""), r.repeat(one, 2, 40), r.literal("\"")}));
       return c;
     }},
    {"names",
     [] {
       auto c = nothing_yet();
       auto& r = *c.grammar;
       auto& pool = r.regex();
       const auto taken = pool.literals({"a", "ab", "name", "the", "is it", "thesis"});
       const auto others = pool.both(any_text(pool, spelling::json_string), pool.complement(taken));
       const std::array<regex_id, 3> name{pool.byte('"'), others, pool.literal("\":")};
       const auto member =
           r.sequence({r.terminal(pool.concat(name)), r.terminal(*parse_regex(pool, "[0-9]+"))});
       r.set_root(r.repeat(r.sequence({member, r.literal(", ")}), 1, 9));
       return c;
     }},
    {"sums",
     [] {
       auto c = nothing_yet();
       auto& r = *c.grammar;
       const auto e = r.declare("e");
       const auto n = r.terminal(*parse_regex(r.regex(), "[0-9]+"));
       const auto nested = r.sequence({r.literal("("), r.call(e), r.literal(")")});
       r.define(e, r.choice({n, nested, r.sequence({r.call(e), r.literal(" + "), r.call(e)})}));
       r.set_root(r.call(e));
       return c;
     }},
    {"tokens",
     [] {
       auto c = nothing_yet();
       auto& r = *c.grammar;
       r.set_root(
           r.sequence({r.tokens({token_id{5}, token_id{40}}), r.any_number(r.no_token_of({token_id{40}})),
                       r.tokens({token_id{40}}), r.literal("end")}));
       return c;
     }},
};

// Writes up to `longest` random tokens that the masks allow, and calls look(place, mask) before each.
template <class Look>
void random_walk(constraint& over, random_engine& random, int longest, Look look) {
  auto at = over.start();
  for (int n = 0; n < longest && !over.must_end(at); ++n) {
    const auto* mask = over.mask(at);
    REQUIRE(mask);
    REQUIRE(mask->count() > 0);
    look(at, *mask);
    const auto ids = mask->ids();
    at = over.accept(at, ids[below(random, ids.size())]);
    REQUIRE(at > constraint::failed);
  }
}

void check_masks(const std::shared_ptr<terminal_views>& views, int walks, int longest) {
  random_engine random(drawn_seed(5));
  for (const auto& [name, make] : kinds) {
    INFO(name);
    auto made_here = constraint::make(make(), views);
    if (!made_here) continue;  // a vocabulary without the characters
    auto& over = **made_here;
    for (int w = 0; w < walks; ++w)
      random_walk(over, random, longest, [&](parse_id at, const token_mask& mask) {
        const auto truth = over.mask_by_definition(at);
        CHECK(mask.ids() == truth.ids());
      });
  }
}

}  // namespace

TEST_CASE("a mask has exactly the tokens whose bytes may follow", "[grammar]") {
  check_masks(bundled(), 3, 25);
}

TEST_CASE("beside declared names, the masks of other names are exact", "[grammar]") {
  const auto& names =
      *std::find_if(kinds.begin(), kinds.end(), [](const auto& k) { return k.first == "names"s; });
  for (const std::string before :
       {"", "\"", "\"a", "\"t", "\"th", "\"the", "\"thes", "\"is ", "\"nam", "\"ab\\n"}) {
    INFO(before);
    auto over = made(names.second());
    const auto at = over->step(over->start(), before);
    REQUIRE(at > constraint::failed);
    CHECK(over->mask(at)->ids() == over->mask_by_definition(at).ids());
  }
}

TEST_CASE("a mask has exactly the tokens whose bytes may follow, on real vocabularies", "[grammar]") {
  const auto dirs = weir::tests::data_folders("tokenizers", "tokenizer.json");
  if (dirs.empty()) WARN("no data");
  for (const auto& dir : dirs) {
    INFO(dir);
    check_masks(views_of(dir), 1, 5);
  }
}

TEST_CASE("every text that random tokens make of an object's mask is JSON", "[grammar]") {
  random_engine random(9);
  auto over = made(*compile_json_object(json_space::compact));
  for (int i = 0; i < 30; ++i) {
    auto at = over->start();
    std::string text;
    for (int n = 0; n < 300 && !over->must_end(at); ++n) {
      const auto ids = over->mask(at)->ids();
      const auto id = ids[below(random, ids.size())];
      text += over->trie().text(id);
      at = over->accept(at, id);
    }
    const auto rest = over->completion(at);
    REQUIRE(rest);
    INFO(text << *rest);
    auto definition = *compile_json_object(json_space::compact);
    if (text.size() < 60) CHECK(weir::tests::earley(*definition.grammar).accepts(text + *rest));
    CHECK(over->may_end(over->step(at, *rest)));
  }
}

TEST_CASE("a cursor that went back allows what it allowed then, and a copy goes its own way", "[grammar]") {
  random_engine random(13);
  for (const auto& [name, make] : kinds) {
    INFO(name);
    auto built = constraint::make(make(), bundled());
    if (!built) continue;
    cursor c(*built);
    std::vector<std::vector<token_id>> masks{c.mask()->ids()};
    for (int n = 0; n < 40; ++n) {
      if (c.tokens() > 0 && below(random, 4) == 0) {
        const auto back = 1 + below(random, c.tokens());
        c.rewind(back);
        masks.resize(masks.size() - back);
      } else if (!masks.back().empty()) {
        REQUIRE(c.accept(masks.back()[below(random, masks.back().size())]));
        masks.push_back(c.mask()->ids());
      }
      CHECK(c.mask()->ids() == masks.back());
      auto fork = c;
      if (!masks.back().empty()) CHECK(fork.accept(masks.back().front()));
      CHECK(c.mask()->ids() == masks.back());
      CHECK_FALSE(c.accept(-1));
    }
  }
}

TEST_CASE("threads that share a constraint get the masks of one alone", "[grammar]") {
  const auto walk = [](constraint& over) {
    std::vector<std::size_t> sizes;
    random_engine random(17);
    for (int i = 0; i < 5; ++i) {
      auto at = over.start();
      for (int n = 0; n < 60 && !over.must_end(at); ++n) {
        const auto ids = over.mask(at)->ids();
        sizes.push_back(ids.size());
        at = over.accept(at, ids[random() % ids.size()]);
      }
    }
    return sizes;
  };
  auto alone = made(*compile_json_object());
  const auto expected = walk(*alone);
  auto shared = made(*compile_json_object());
  std::vector<std::vector<std::size_t>> got(4);
  std::vector<std::thread> threads;
  for (auto& g : got) threads.emplace_back([&] { g = walk(*shared); });
  for (auto& t : threads) t.join();
  for (const auto& g : got) CHECK(g == expected);
}

TEST_CASE("lists that recurse to the right or to the left do not grow with the text", "[grammar]") {
  for (const bool left : {false, true}) {
    auto c = nothing_yet();
    auto& r = *c.grammar;
    const auto list = r.declare("list");
    const auto item = r.literal("a,");
    r.define(list,
             r.choice({item, left ? r.sequence({r.call(list), item}) : r.sequence({item, r.call(list)})}));
    r.set_root(r.call(list));
    auto over = made(std::move(c));
    auto at = over->step(over->start(), "a,a,a,");
    const auto size = over->memo_bytes();
    for (int i = 0; i < 1'000; ++i) at = over->step(at, "a,");
    CHECK(over->may_end(at));
    CHECK(over->memo_bytes() == size);
  }
}

TEST_CASE("an ambiguous rule that calls itself twice stays small", "[grammar]") {
  auto c = nothing_yet();
  auto& r = *c.grammar;
  const auto s = r.declare("s");
  r.define(s, r.choice({r.literal("a"), r.sequence({r.call(s), r.call(s)})}));
  r.set_root(r.call(s));
  auto over = made(std::move(c));
  auto at = over->start();
  for (int i = 0; i < 300; ++i) at = over->step(at, 'a');
  CHECK(over->may_end(at));
  CHECK(over->memo_bytes() < 1'000'000);
}

namespace {

compiled too_ambiguous() {
  auto c = nothing_yet();
  auto& r = *c.grammar;
  auto part = r.choice({r.literal("a"), r.literal("aa")});
  for (int i = 0; i < 3; ++i) part = r.repeat(r.sequence({part, r.maybe(r.literal("a"))}), 1, 100'000);
  r.set_root(r.sequence({part, r.literal("b")}));
  return c;
}

}  // namespace

TEST_CASE("what is too ambiguous ends in a failure that says so", "[grammar]") {
  auto over = made(too_ambiguous());
  auto at = over->start();
  for (int i = 0; i < 3'000 && at != constraint::failed; ++i) at = over->step(at, 'a');
  CHECK(at == constraint::failed);
  CHECK_FALSE(over->failure().empty());
  CHECK(over->mask(at) == nullptr);
}

TEST_CASE("a job whose constraint fails behind a token has failed", "[grammar]") {
  const auto over = *constraint::make(too_ambiguous(), weir::tests::byte_views());
  job_mask mask(over, {.vocab_size = 256, .max_tokens = 5'000});
  if (!mask.begin()) mask.work();
  for (int i = 0; i < 3'000 && mask.at() == job_mask::place::open; ++i)
    if (!mask.follow('a')) mask.work();
  REQUIRE(mask.at() == job_mask::place::failed);
  CHECK(mask.fault().message.find("cannot be followed behind token") != std::string::npos);
}

TEST_CASE("a count costs no more the larger it is", "[grammar]") {
  std::vector<std::size_t> bytes;
  for (const std::uint32_t most : {2'000u, 1'000'000'000u}) {
    auto c = nothing_yet();
    auto& r = *c.grammar;
    r.set_root(r.sequence({r.repeat(r.literal("x"), 3, most), r.literal("!")}));
    auto over = made(std::move(c));
    const auto at = over->step(over->start(), std::string(1'000, 'x'));
    CHECK(over->step(at, '!') > constraint::failed);
    CHECK(over->step(over->start(), "xx!") == constraint::dead);
    const auto end = over->step(over->start(), std::string(2'000, 'x'));
    CHECK((over->step(end, 'x') == constraint::dead) == (most == 2'000));
    bytes.push_back(over->memo_bytes());
  }
  CHECK(bytes[1] < bytes[0] + 1'000);
}

TEST_CASE("a root that nothing satisfies is refused, and the place is named", "[grammar]") {
  auto c = nothing_yet();
  auto& r = *c.grammar;
  const auto loop = r.declare("/properties/a");
  r.define(loop, r.sequence({r.literal("x"), r.call(loop)}));
  r.set_root(r.sequence({r.literal("{"), r.call(loop)}));
  const auto over = constraint::make(std::move(c), bundled());
  REQUIRE(over.has_error());
  CHECK(over.error().code == weir::core::errc::invalid_param);
  CHECK(over.error().message.find("/properties/a") != std::string::npos);
}

TEST_CASE("a token that the vocabulary does not have is refused", "[grammar]") {
  for (const token_name& name : {token_name(token_id{100'000'000}), token_name(std::string("<|nobody|>"))}) {
    auto c = nothing_yet();
    c.grammar->set_root(c.grammar->tokens({name}));
    const auto over = constraint::make(std::move(c), bundled());
    REQUIRE(over.has_error());
    CHECK(over.error().message.find("no token") != std::string::npos);
  }
}

TEST_CASE("special tokens match no text", "[grammar]") {
  auto over = made(of_regex("[^]*"));
  const auto& words = over->trie().words();
  for (std::uint32_t id = 0; id < over->trie().vocab_size(); ++id)
    if (words.is_special(static_cast<token_id>(id)))
      CHECK_FALSE(over->mask(over->start())->has(static_cast<token_id>(id)));
}

}  // namespace weir::tests::constraint_test
