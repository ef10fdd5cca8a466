// Banned strings: a sequence goes back from them, and goes on as if it had never been there.
#include <cctype>
#include <random>

#include "core/schedule/sequence.h"
#include "tests/support/budget.h"
#include "tests/support/constraints.h"
#include "tests/support/engine_rig.h"
#include "tests/support/job_kinds.h"
#include "tests/support/seed.h"

namespace weir::tests::engine_banned_test {

using namespace weir::core;

namespace {

// Special tokens add nothing.
std::string text_of(std::span<const token_id> ids, const tokenizer& by = *letters(61)) {
  const token_table text(by);
  std::string out;
  for (const token_id id : ids) out += text[id];
  return out;
}

std::string small(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The token of `output` in which a banned string begins: of those that end first, the longest.
std::optional<std::size_t> banned_from(const std::vector<token_id>& output,
                                       const std::vector<std::string>& banned) {
  const std::string text = small(text_of(output));
  std::optional<std::size_t> at;
  for (std::size_t end = 1; end <= text.size() && !at; ++end)
    for (const auto& b : banned)
      if (text.substr(0, end).ends_with(b)) at = std::min(at.value_or(end), end - b.size());
  if (!at) return std::nullopt;
  std::size_t token = 0;
  while (text_of(std::span(output).first(token + 1)).size() <= *at) ++token;
  return token;
}

// The output of a greedy job over letters(61), by the plainest means.
std::vector<token_id> by_definition(const job& j, const std::vector<std::string>& banned) {
  std::vector<token_id> all(j.prompt.begin(), j.prompt.end());
  std::vector<std::vector<token_id>> refused(j.max_tokens + 1);
  std::vector<token_id> output;
  while (output.size() < j.max_tokens) {
    auto logits = toy_model::logits_behind(all, 61);
    for (const token_id id : refused[output.size()]) logits[static_cast<std::size_t>(id)] = -10;
    const auto best = std::ranges::max_element(logits) - logits.begin();
    output.push_back(static_cast<token_id>(best));
    all.push_back(output.back());
    const auto at = banned_from(output, banned);
    if (!at) continue;
    for (std::size_t i = *at + 1; i < refused.size(); ++i) refused[i].clear();
    refused[*at].push_back(output[*at]);
    output.resize(*at);
    all.resize(j.prompt.size() + *at);
  }
  return output;
}

// Random texts over the first letters, of which a greedy toy meets many.
std::vector<std::string> some_texts(std::mt19937& random) {
  std::vector<std::string> out;
  for (int i = 0; i < 12; ++i) {
    std::string s;
    for (auto n = 1 + random() % 2; n > 0; --n) s += static_cast<char>('a' + random() % 26);
    out.push_back(s);
  }
  return out;
}

}  // namespace

TEST_CASE("banned strings: a greedy answer is what the definition gives, in both loops, also beside others") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    std::uint64_t went_back = 0;
    const unsigned days = weir::tests::rounds(10);
    for (unsigned day = 0; day < days; ++day) {
      CAPTURE(how == loop_kind::plain, day);
      std::mt19937 random(static_cast<unsigned>(weir::tests::drawn_seed(day)));
      auto c = small_config();
      c.kv_pages = day % 2 ? 12 : 256;  // few: sequences are preempted
      engine_rig rig(c, how);
      std::vector<std::pair<std::vector<token_id>, std::shared_ptr<recording_sink>>> jobs;
      for (std::uint64_t n = 0; n < 8; ++n) {
        auto j = rig.job(n, 60 + random() % 120, 1 + random() % 80);
        j.sampling.temperature = 0;
        const auto banned = some_texts(random);
        j.banned = banned;
        auto expected = by_definition(j, banned);
        jobs.emplace_back(std::move(expected), rig.submit(std::move(j)));
        for (auto steps = random() % 30; steps > 0; --steps) rig.step();
      }
      rig.run();
      for (const auto& [expected, sink] : jobs) {
        CHECK(sink->ids() == expected);
        REQUIRE(sink->finishes == 1);
        CHECK(sink->end->reason == finish_reason::length);
        CHECK(sink->end->output_tokens == expected.size());
      }
      went_back += rig.engine->counts().went_back;
    }
    CHECK(went_back > 10 * days);
  }
}

TEST_CASE("banned strings: drawn answers have none, and are the same in both loops") {
  std::uint64_t went_back = 0;
  for (std::uint64_t kind = 0; kind < job_kinds; ++kind) {
    CAPTURE(kind);
    const auto plain = run_of_kind(kind), overlapped = run_of_kind(kind, loop_kind::overlapped);
    REQUIRE(plain.ids() == overlapped.ids());
    REQUIRE(plain.end->reason == overlapped.end->reason);
    REQUIRE(plain.end->shown_bytes == overlapped.end->shown_bytes);
    engine_rig rig(small_config(), kind_words());
    const auto j = job_of_kind(rig, kind);
    if (j.banned.empty()) continue;
    const auto text = small(text_of(plain.ids(), *kind_words())).substr(0, plain.end->shown_bytes);
    CAPTURE(text, name(plain.end->reason));
    for (const char* b : {"abc", "ca", "cde", "dab", "g", "22", "q"})
      if (!j.constraint) CHECK(text.find(b) == text.npos);
    if (plain.end->reason == finish_reason::stop) CHECK(text.find("hence") == text.npos);
    auto again = job_of_kind(rig, kind);
    rig.toy->some_rows_unwanted = true;
    const auto sink = rig.submit(std::move(again));
    rig.run();
    went_back += rig.engine->counts().went_back;
  }
  CHECK(went_back > 20);
}

TEST_CASE("banned strings: a token that was taken is never taken back, and what may begin one is held") {
  engine_rig rig;
  rig.toy->script = [](std::uint64_t, std::uint32_t i) { return static_cast<token_id>(i % 3); };  // abcabc…
  auto j = rig.job(1, 12);
  j.banned = {"bcabx"};
  const auto sink = rig.submit(std::move(j));
  std::size_t before = 0;
  while (!rig.engine->idle()) {
    rig.step();
    REQUIRE(sink->tokens.size() >= before);
    before = sink->tokens.size();
    if (!sink->end) CHECK(sink->tokens.size() % 3 == (before > 0 ? 1u : 0u));  // up to the latest "b"
  }
  CHECK(sink->tokens.size() == 12);
}

TEST_CASE("banned strings: where no other token is left, the job ends with what comes before, and says so") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    CAPTURE(how == loop_kind::plain);
    engine_rig rig(small_config(), how);
    rig.toy->script = [](std::uint64_t, std::uint32_t i) { return static_cast<token_id>(i % 5); };
    auto j = rig.job(1, 50);
    j.banned = {"cde"};
    const auto sink = rig.submit(std::move(j));
    rig.run();
    CHECK(text_of(sink->ids()) == "ab");
    CHECK(sink->end->reason == finish_reason::banned);
    CHECK(rig.engine->counts().went_back == 1);
    CHECK(rig.engine->counts().taken_back == 3);
  }
}

TEST_CASE("banned strings: the tries at one place are bounded, and the text before it is shown") {
  std::vector<std::string> banned;
  for (token_id id = 0; id < 26; ++id)
    for (token_id next = 0; next < 26; ++next)
      banned.push_back({static_cast<char>('a' + id), static_cast<char>('a' + next)});
  engine_rig rig(small_config(), letters(26));
  auto j = rig.job(1, 50);
  std::vector<token_id> prompt{1, 2, 3};
  j.prompt = std::move(prompt);
  j.banned = banned;
  const auto sink = rig.submit(std::move(j));
  rig.run(200000);
  CHECK(sink->end->reason == finish_reason::banned);
  CHECK(sink->tokens.size() <= 1);
  CHECK(rig.engine->counts().went_back <= sequence::most_going_back);
}

TEST_CASE("banned strings: a forced token is not tried again, but the drawn one before it that is held") {
  static const auto views = views_of(letters(61));
  for (const auto force : {grammar::forcing::canonical, grammar::forcing::off}) {
    for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
      CAPTURE(how == loop_kind::plain, force == grammar::forcing::off);
      for (std::uint64_t n = 0; n < 20; ++n) {
        CAPTURE(n);
        const auto text_with = [&](std::vector<std::string> banned, finish_reason why) {
          engine_rig rig(small_config(), how);
          auto j = rig.job(n, 50);
          j.force = force;
          j.constraint = fresh_constraint("(axyz|bxyw|cuvz)", views);
          j.banned = banned;
          const auto sink = rig.submit(std::move(j));
          rig.run();
          CHECK(sink->end->reason == why);
          return text_of(sink->ids()).substr(0, sink->end->shown_bytes);
        };
        CHECK(text_with({"axyz", "cuv"}, finish_reason::stop) == "bxyw");
        // what is forced behind a decided token cannot be helped
        CHECK(text_with({"xy", "vz"}, finish_reason::banned).size() <= 2);
      }
    }
  }
}

}  // namespace weir::tests::engine_banned_test
