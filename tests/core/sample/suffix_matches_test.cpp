#include "core/sample/suffix_matches.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "core/sample/dry.h"
#include "core/sample/late_bans.h"
#include "core/sample/pipeline.h"
#include "tests/core/sample/definition.h"

namespace weir::tests::suffix_matches_test {

using namespace weir::core;

namespace {

using places = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

places listed(const suffix_matches& of) {
  places out;
  for (const auto& m : of.all()) out.emplace_back(m.place, m.length);
  return out;
}

// Every place compared with the end, token by token.
places by_definition(const std::vector<token_id>& all, std::size_t limit) {
  places out;
  for (std::size_t i = all.size() - 1; i-- > 0;) {
    std::size_t n = 0;
    while (n <= i && n < limit && all[i - n] == all[all.size() - 1 - n]) ++n;
    if (n > 0) out.emplace_back(i, n);
  }
  return out;
}

std::vector<token_id> random_tokens(std::mt19937& random, std::size_t n, int kinds) {
  std::vector<token_id> out;
  for (std::size_t i = 0; i < n; ++i)
    out.push_back(static_cast<token_id>(random() % static_cast<unsigned>(kinds)));
  return out;
}

}  // namespace

TEST_CASE("matches are those of comparing every place, after the prompt and after each token") {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const int kinds = 1 + round % 4;
    const auto prompt = random_tokens(random, random() % 40, kinds);
    const std::uint32_t limit = round % 3 == 0 ? random() % 5 : 1000;
    token_history history(prompt, 40);
    suffix_matches matches(history, static_cast<std::uint32_t>(prompt.size()) + 40, 4, limit);
    INFO("round " << round);
    auto all = prompt;
    if (all.size() > 1) REQUIRE(listed(matches) == by_definition(all, limit));
    std::size_t since = limit;
    for (int i = 0; i < 40; ++i) {
      all.push_back(static_cast<token_id>(random() % static_cast<unsigned>(kinds)));
      history.add(all.back());
      matches.add(history);
      ++since;
      if (all.size() > 1) REQUIRE(listed(matches) == by_definition(all, since));
      if (random() % 16) continue;
      matches.forget();
      since = 0;
    }
  }
}

TEST_CASE("no tokens come twice in a row of n, and bad words do not end") {
  const std::vector<token_id> prompt{1, 2, 3, 1, 2};
  const auto banned = [&](const sampling_params& p, std::vector<token_id> more = {}) {
    token_history history(prompt, 9);
    late_bans bans(p, history, 14, 10);
    for (const token_id id : more) {
      history.add(id);
      bans.add(history);
    }
    return std::vector<token_id>(bans.now().begin(), bans.now().end());
  };
  using ids = std::vector<token_id>;
  CHECK(banned({.no_repeat_ngram_size = 2}) == ids{3});
  CHECK(banned({.no_repeat_ngram_size = 3}) == ids{3});
  CHECK(banned({.no_repeat_ngram_size = 4}) == ids{});
  CHECK(banned({.no_repeat_ngram_size = 2}, {4, 1}) == ids{2});
  CHECK(banned({.no_repeat_ngram_size = 2}, {4, 2}) == ids{3, 4});
  const sampling_params words{.bad_words = {2, 2, 7, 3, 1, 2, 5, 2, 9, 8}};
  CHECK(banned(words) == ids{5, 7});
  CHECK(banned(words, {9}) == ids{8});
  CHECK(banned(words, {9, 8}) == ids{});
}

TEST_CASE("a sampler's masked tokens are those of min_tokens, of lists and of what has come, each once") {
  const std::vector<token_id> prompt{4, 5, 4};
  sampler s({.temperature = 0, .disallow_tokens = {5, 8}, .no_repeat_ngram_size = 2}, 10, {},
            {.max_tokens = 5, .min_tokens = 1, .endings = {0}, .prompt = prompt});
  const auto masked = [&] { return std::vector<token_id>(s.masked().begin(), s.masked().end()); };
  CHECK(masked() == std::vector<token_id>{0, 5, 8});
  s.accept(4);
  CHECK(masked() == std::vector<token_id>{4, 5, 8});
}

TEST_CASE("DRY's penalty grows with the repetition, and ends at breakers") {
  const auto minus = [](const sampling_params& p, const std::vector<token_id>& all, std::size_t prompt) {
    const std::span<const token_id> begin(all.data(), prompt);
    token_history history(begin, 20);
    dry_penalties dry(p, history, static_cast<std::uint32_t>(prompt) + 20, 20);
    for (std::size_t i = prompt; i < all.size(); ++i) {
      history.add(all[i]);
      dry.add(history);
    }
    std::map<token_id, float> out;
    for (const auto& [id, by] : dry.now()) out[id] = by;
    return out;
  };
  using map = std::map<token_id, float>;
  const std::vector<token_id> all{1, 2, 3, 4, 9, 2, 3, 5, 9, 1, 2, 3};
  sampling_params p{.dry_multiplier = 0.5f, .dry_base = 2, .dry_allowed_length = 2};
  for (const std::size_t prompt : {0u, 5u, 12u}) {
    INFO("prompt " << prompt);
    CHECK(minus(p, all, prompt) == map{{4, 1.0f}, {5, 0.5f}});  // 1 2 3 came before 4, 2 3 before 5
    auto q = p;
    q.dry_range = 7;
    CHECK(minus(q, all, prompt) == map{{5, 0.5f}});
    q.dry_range = 6;  // of 2 3 only the 3 is in the range
    CHECK(minus(q, all, prompt) == map{});
    q = p;
    q.dry_allowed_length = 3;
    CHECK(minus(q, all, prompt) == map{{4, 0.5f}});
    auto breakers = std::make_shared<dry_breakers>();
    breakers->single = {5};
    q = p;
    q.dry_sequence_breakers = breakers;
    CHECK(minus(q, all, prompt) == map{{4, 1.0f}});  // 5 is one itself
    breakers = std::make_shared<dry_breakers>();
    breakers->longer.push_back({{9, 7}, {1}});
    q.dry_sequence_breakers = breakers;
    CHECK(minus(q, all, prompt) == map{{4, 0.5f}, {5, 0.5f}});  // 2 3 have come since 9 1
  }
  const std::vector<token_id> same(20, 3);
  p.dry_base = 100;
  CHECK(minus(p, same, 10).at(3) == 1e30f);  // bounded: logits stay finite
}

}  // namespace weir::tests::suffix_matches_test
