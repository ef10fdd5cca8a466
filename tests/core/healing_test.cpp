// Token healing: prompts that end anywhere, with the tokenizers of real models, and jobs of the engine.
#include "core/healing.h"

#include <random>
#include <set>

#include "core/text/detokenizer.h"
#include "tests/support/budget.h"
#include "tests/support/constraints.h"
#include "tests/support/data.h"
#include "tests/support/engine_rig.h"
#include "tests/support/seed.h"

namespace weir::tests::healing_test {

using namespace weir::core;

namespace {

bool allows(const healing& h, token_id id) {
  return (h.allowed[static_cast<std::size_t>(id) / 32] >> id % 32 & 1) != 0;
}

std::string bytes_of(std::span<const token_id> ids, const tokenizer& by) {
  std::string out;
  for (const token_id id : ids) out += by.token_bytes(id);
  return out;
}

// A sentence of common words; no two rounds have the same.
std::string random_prompt(std::mt19937& random) {
  constexpr const char* words[] = {"The",   " river", " was",  " wide.\n", " \"Where\"", " http://", " don't",
                                   " naïve", " 1234",  "  two", " ünder",   " he",        " said,",   " cat"};
  std::string out;
  for (auto n = 2 + random() % 6; n > 0; --n) out += words[random() % std::size(words)];
  return out;
}

// Job `n` whose prompt's last token, "c", was taken away; tokens that begin with it are "c", "ca" to "cz".
job healed_job(const engine_rig& rig, std::uint64_t n, std::uint32_t max_tokens) {
  auto j = rig.job(n, max_tokens);
  j.healing = healing_of(2, *letters(160), 160);
  return j;
}

}  // namespace

TEST_CASE("token healing: the text goes on behind any prefix of 200 prompts, whatever token comes") {
  for (const auto& dir : bundled_models()) {
    CAPTURE(dir);
    const auto words = load_tokenizer(dir.string());
    REQUIRE(words.has_value());
    const tokenizer& by = **words;
    std::mt19937 random(static_cast<unsigned>(weir::tests::drawn_seed(0)));
    int healed = 0;
    for (int round = 0; round < 200; ++round) {
      const std::string prompt = random_prompt(random);
      for (std::size_t end = 1; end <= prompt.size(); ++end) {
        if (end < prompt.size() && (static_cast<unsigned char>(prompt[end]) & 0xC0) == 0x80) continue;
        const std::string sent = prompt.substr(0, end);
        auto ids = by.encode(sent, {.add_special = false});
        if (ids.empty()) continue;
        const auto h = healing_of(ids.back(), by, by.vocab_size());
        REQUIRE(h);
        REQUIRE(allows(*h, ids.back()));
        const std::string whole = bytes_of(ids, by);
        ids.pop_back();
        // some token that is allowed
        token_id first = static_cast<token_id>(random() % by.vocab_size());
        while (!allows(*h, first)) first = (first + 1) % static_cast<token_id>(by.vocab_size());
        detokenizer text(*words, true, h->bytes.size());
        std::string shown;
        text.push(first, shown);
        const auto more = static_cast<token_id>(random() % by.vocab_size());
        text.push(more, shown);
        text.flush(shown);
        ids.insert(ids.end(), {first, more});
        detokenizer all(*words, true);
        std::string expected;
        for (const token_id id : ids) all.push(id, expected);
        all.flush(expected);
        // what the answer shows stands behind the prompt as it was sent
        REQUIRE(bytes_of(ids, by).starts_with(whole));
        if (expected.starts_with(whole)) {  // else the prompt's end and the answer share a character
          REQUIRE(expected == whole + shown);
          ++healed;
        }
      }
    }
    CHECK(healed > 2000);
  }
}

TEST_CASE("token healing: special tokens are not healed") {
  const auto words = load_tokenizer(bundled_models().front().string());
  REQUIRE(words.has_value());
  for (std::uint32_t id = 0; id < (*words)->vocab_size(); ++id) {
    const auto t = static_cast<token_id>(id);
    const bool text = !(*words)->is_special(t) && !(*words)->token_bytes(t).empty();
    CHECK((healing_of(t, **words, (*words)->vocab_size()) != nullptr) == text);
  }
}

TEST_CASE("token healing: the first token begins with the prompt's last one, and later ones are free") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    engine_rig rig(small_config(), letters(160), 4096, how);
    int others = 0;
    for (std::uint64_t n = 0; n < 30; ++n) {
      CAPTURE(how == loop_kind::plain, n);
      const auto j = healed_job(rig, n, 6);
      const auto ids = rig.solo(j);
      REQUIRE(ids.size() == 6);
      CHECK(allows(*j.healing, ids[0]));
      for (std::size_t i = 1; i < ids.size(); ++i) others += allows(*j.healing, ids[i]) ? 0 : 1;
      auto spoken = healed_job(rig, n, 6);
      spoken.spoken = {ids[0], ids[1]};
      CHECK(rig.solo(spoken) == std::vector<token_id>(ids.begin() + 2, ids.end()));
    }
    CHECK(others > 50);
    auto wrong = healed_job(rig, 1, 6);
    wrong.spoken = {0};
    const auto sink = rig.submit(std::move(wrong));
    CHECK(sink->end->fault->param == "spoken");
  }
}

TEST_CASE("token healing: stop strings and banned strings begin behind the prompt as it was sent") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    CAPTURE(how == loop_kind::plain);
    engine_rig rig(small_config(), letters(160), 4096, how);
    const token_id first = 26 + 2 * 26 + 3;  // "cd"
    rig.toy->script = [](std::uint64_t, std::uint32_t i) { return i == 0 ? first : token_id{4}; };
    auto unstopped = healed_job(rig, 1, 3);
    unstopped.stop = {"c", "cd"};
    CHECK(rig.solo(std::move(unstopped)) == std::vector<token_id>{first, 4, 4});
    auto stopped = healed_job(rig, 2, 3);
    stopped.stop = {"de"};
    const auto sink = rig.submit(std::move(stopped));
    rig.run();
    CHECK(sink->ids() == std::vector<token_id>{first});
    CHECK(sink->end->shown_bytes == 1);  // "c", which the prompt has
    rig.toy->script = nullptr;
    for (std::uint64_t n = 0; n < 30; ++n) {
      auto banned = healed_job(rig, n, 8);
      banned.banned = {"a", "b", "d", "e", "g", "k"};
      const auto ids = rig.solo(std::move(banned));
      REQUIRE(ids.size() == 8);
      const auto text = bytes_of(ids, *letters(160));
      CHECK(text.starts_with("c"));
      CHECK(text.find_first_of("abdegk") == text.npos);
    }
  }
}

TEST_CASE("token healing: a constraint begins behind the prompt as it was sent") {
  static const auto views = views_of(letters(160));
  for (const auto force : {grammar::forcing::canonical, grammar::forcing::off}) {
    for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
      engine_rig rig(small_config(), letters(160), 4096, how);
      std::set<std::string> seen;
      for (std::uint64_t n = 0; n < 30; ++n) {
        CAPTURE(how == loop_kind::plain, force == grammar::forcing::off, n);
        const auto made = [&] {
          auto j = healed_job(rig, n, 30);
          j.force = force;
          j.constraint = fresh_constraint("(axyz|bxyw|cuvz)", views);
          if (n % 2) j.banned = {"cuv"};
          return j;
        };
        const auto sink = rig.submit(made());
        rig.run();
        CHECK(sink->end->reason == finish_reason::stop);
        const auto text = bytes_of(sink->ids(), *letters(160));
        seen.insert(text);
        if (n % 2) CHECK(text != "ccuvz");
        auto spoken = made();
        spoken.spoken = {sink->ids().front()};
        const auto rest = rig.submit(std::move(spoken));
        rig.run();
        auto all = rest->ids();
        all.insert(all.begin(), sink->ids().front());
        CHECK(all == sink->ids());
      }
      CHECK(seen == std::set<std::string>{"caxyz", "cbxyw", "ccuvz"});
    }
  }
}

}  // namespace weir::tests::healing_test
