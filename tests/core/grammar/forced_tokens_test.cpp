// Forced tokens: canonical ones are those that the tokenizer makes of the whole text.
#include "core/grammar/forced_tokens.h"

#include "core/grammar/masks/job_mask.h"
#include "tests/core/grammar/grammar_kit.h"

namespace weir::tests::forced_tokens_test {

using namespace weir::core::grammar;
using weir::core::token_id;

namespace {

constraint_text text_of(constraint_text::kind what, std::string text) {
  constraint_text c;
  c.what = what;
  c.text = std::move(text);
  return c;
}

std::vector<token_id> encoded(const token_trie& trie, std::string_view text) {
  const bool spaced = trie.leading_space() && text.starts_with(' ');
  return trie.words().encode(text.substr(spaced ? 1 : 0), {.add_special = false, .parse_special = false});
}

struct yield {
  std::size_t tokens = 0, forced = 0;
};

// Writes the tokens that the tokenizer makes of a text, as a model might, and checks that the tokens forced
// at each place are the tokenizer's. False: the constraint does not allow the text.
bool forced_as_encoded(constraint& over, std::string_view text, yield& all) {
  if (!over.may_end(over.step(over.start(), text))) return false;
  const auto ids = encoded(over.trie(), text);
  auto at = over.start();
  for (std::size_t n = 0; n < ids.size();) {
    const auto forced = canonical_tokens(over, at, std::span(ids).first(n));
    REQUIRE(forced.size() <= ids.size() - n);
    INFO("behind " << n << " of " << over.trie().words().decode(ids, {}) << ": "
                   << over.trie().words().decode(forced, {}));
    REQUIRE(std::equal(forced.begin(), forced.end(), ids.begin() + static_cast<std::ptrdiff_t>(n)));
    const auto written = std::max<std::size_t>(forced.size(), 1);
    for (std::size_t i = 0; i < written; ++i) at = over.accept(at, ids[n + i]);
    if (at <= constraint::failed) return false;
    n += written;
    all.forced += forced.size();
  }
  all.tokens += ids.size();
  return over.may_end(at);
}

// A text of random tokens. The number of a draw is its position, so that forcing shifts no other draw.
std::vector<token_id> written_by(job_mask& mask, std::size_t most) {
  std::vector<token_id> out;
  if (!mask.begin()) mask.work();
  while (out.size() < most) {
    while (const auto id = mask.forced()) {
      out.push_back(*id);
      mask.take_forced();
    }
    if (mask.at() != job_mask::place::open) break;
    std::vector<token_id> allowed;
    for (std::uint32_t id = 0; id < 32 * mask.allowed().size(); ++id)
      if (mask.allowed()[id / 32] >> (id % 32) & 1) allowed.push_back(static_cast<token_id>(id));
    REQUIRE_FALSE(allowed.empty());
    std::mt19937 random(static_cast<unsigned>(out.size()));
    out.push_back(allowed[random() % allowed.size()]);
    if (!mask.follow(out.back())) mask.work();
  }
  return out;
}

}  // namespace

TEST_CASE("forced tokens of the bundled tokenizer are those of the whole text", "[grammar]") {
  const std::pair<constraint_text, std::vector<std::string>> rows[] = {
      {text_of(constraint_text::kind::regex, "the (river|bridge) is (deep|wide) and cold"),
       {"the river is deep and cold", "the bridge is wide and cold"}},
      {text_of(constraint_text::kind::regex, "(one|only|ones) of (them|these)"),
       {"one of them", "only of these", "ones of them"}},
      {text_of(constraint_text::kind::json_schema,
               R"({"properties":{"name":{"enum":["otter","heron"]},"height in metres":{"type":"integer"}},
                   "required":["name","height in metres"],"additionalProperties":false,"type":"object"})"),
       {R"({"name":"otter","height in metres":12})", R"({"name": "heron", "height in metres": 3})"}},
      {text_of(constraint_text::kind::regex, "Gr\xC3\xBC(n|\xC3\x9F)e aus (K\xC3\xB6ln|K\xC3\xBCrten)"),
       {"Gr\xC3\xBCne aus K\xC3\xB6ln",
        "Gr\xC3\xBC\xC3\x9F"
        "e aus K\xC3\xBCrten"}}};
  yield all;
  for (const auto& [what, texts] : rows) {
    INFO(what.text);
    const auto over = *bound(what, bundled_views());
    for (const auto& text : texts) {
      INFO(text);
      CHECK(forced_as_encoded(*over, text, all));
    }
  }
  CHECK(all.forced > all.tokens / 4);
}

TEST_CASE("forced tokens of published schemas' instances are those of the whole text", "[grammar]") {
  const auto dirs = data_folders("tokenizers", "tokenizer.json");
  if (dirs.empty()) WARN("no data");
  for (const auto& dir : dirs) {
    INFO(dir);
    auto words = weir::core::load_tokenizer(dir.string());
    REQUIRE(words.has_value());
    const auto views = std::make_shared<terminal_views>(std::make_shared<const token_trie>(*words));
    yield all;
    for (const char* file : {"BFCL.jsonl", "Github_easy.jsonl", "Glaiveai2K.jsonl"}) {
      std::ifstream in(data_dir() / "schemas/maskbench" / file);
      std::size_t n = 0;
      for (std::string line; std::getline(in, line);) {
        if (n++ % 9 != 0) continue;
        const auto group = read_json_tree(line, {.bytes = 1 << 22, .depth = 200});
        REQUIRE(group.has_value());
        auto what = text_of(constraint_text::kind::json_schema,
                            compact(*group, *group->member(json_tree::root, "schema")));
        what.space = json_space::compact;
        const auto over = bound(what, views);
        if (!over) continue;
        for (const auto test : (*group)[*group->member(json_tree::root, "tests")].items) {
          if (!(*group)[*group->member(test, "valid")].truth) continue;
          const auto text = compact(*group, *group->member(test, "data"));
          INFO(what.text << "\n" << text);
          forced_as_encoded(**over, text, all);
        }
      }
    }
    INFO(all.forced << " of " << all.tokens);
    if (all.tokens == 0) continue;  // it has no tokens for braces
    CHECK(all.tokens > 1000);
    CHECK(all.forced * 100 > all.tokens * 12);
  }
}

TEST_CASE("forced tokens that are drawn one by one are the same", "[grammar]") {
  for (const char* regex : {"abcdefgh(x|y)abcabcab{0,3}z", "(abc|abd){9}", "a{300}b"}) {
    for (const auto force : {forcing::canonical, forcing::single}) {
      INFO(regex);
      std::vector<std::vector<token_id>> all;
      for (const bool drawn : {false, true}) {
        const auto views = std::make_shared<terminal_views>(std::make_shared<const token_trie>(letters(61)));
        job_mask mask(*bound(text_of(constraint_text::kind::regex, regex), views),
                      {.vocab_size = 61, .max_tokens = 400, .force = force, .draw_forced = drawn});
        all.push_back(written_by(mask, 400));
        CHECK(mask.at() == job_mask::place::over);
      }
      CHECK(all[0] == all[1]);
    }
  }
}

TEST_CASE("single forcing writes what draws would write", "[grammar]") {
  for (const char* regex : {"bcdefgh(x|y)qponm{0,3}z", "(qrs|qrt){9}"}) {
    std::vector<std::vector<token_id>> all;
    for (const auto force : {forcing::single, forcing::off}) {
      const auto views = std::make_shared<terminal_views>(std::make_shared<const token_trie>(letters(61)));
      job_mask mask(*bound(text_of(constraint_text::kind::regex, regex), views),
                    {.vocab_size = 61, .max_tokens = 400, .force = force});
      all.push_back(written_by(mask, 400));
    }
    CHECK(all[0] == all[1]);
  }
}

TEST_CASE("a token that the model does not have is not forced", "[grammar]") {
  const auto views = std::make_shared<terminal_views>(std::make_shared<const token_trie>(letters(61)));
  // id 27 is "ab", id 1 is "b"
  job_mask mask(*bound(text_of(constraint_text::kind::regex, "ab"), views),
                {.vocab_size = 20, .max_tokens = 9});
  if (!mask.begin()) mask.work();
  CHECK(mask.forced() != 27);
}

}  // namespace weir::tests::forced_tokens_test
