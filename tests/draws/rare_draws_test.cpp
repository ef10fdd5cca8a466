// Draws with rare cuts on a cuda device, beside the host's sampler. Skipped, saying so, where there is no
// device.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "core/model/device_draws.h"
#include "core/sample/philox.h"
#include "core/sample/pipeline.h"
#include "tests/core/sample/definition.h"
#include "tests/core/sample/random_params.h"
#include "tests/draws/launched_draws.h"
#include "tests/kernels/on_device.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::rare_draws_test {

using namespace weir::core;
namespace cuda = weir::kernels::cuda;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

// Kinds: 0 and 1 spread logits, 2 many ties, 3 few tokens above -inf, 4 few likely tokens, 5 equal logits.
std::vector<float> random_row(std::mt19937& random, std::uint32_t vocab, std::uint32_t kind) {
  std::normal_distribution<float> normal(0, kind == 0 ? 1.0f : 4.0f);
  std::vector<float> l(vocab);
  for (float& x : l) {
    x = kind == 5 ? 1.5f : normal(random);
    if (kind == 2) x = std::round(x * 2) / 2;
    if (kind == 3 && random() % 8 != 0) x = -inf;
  }
  for (int i = 0; i < 20 && kind == 4; ++i) l[random() % vocab] += 15;
  if (kind == 3) l[vocab / 2] = 2;
  return l;
}

// One draw, and what its definition needs to know.
struct case_of {
  definition d;
  std::unique_ptr<sampler> s;
  std::vector<std::uint32_t> allowed;
  std::uint32_t position = 0;
};

case_of random_case(std::mt19937& random, std::uint32_t vocab, bool rare) {
  case_of c;
  c.d.p = random_params(random);
  if (rare) add_rare(random, vocab, c.d.p);
  sampling_params& p = c.d.p;
  const std::uint32_t usual = random() % 2 ? vocab : 7;  // few tokens: repetitions come
  for (int i = 0; i < 20; ++i) c.d.prompt.push_back(static_cast<token_id>(random() % usual));
  if (random() % 4 == 0) p.logit_bias = {{1, 3.5f}, {2, -100.0f}, {5, 0.25f}};
  if (random() % 5 == 0) c.d.masked = {0, 3};
  if (random() % 3 == 0) {
    c.allowed.assign((vocab + 31) / 32, 0);
    const std::uint32_t one_in = 1 + random() % (random() % 2 ? 4 : vocab);
    for (std::uint32_t id = 0; id < vocab; ++id) {
      const bool in = id == 5 || random() % one_in == 0;
      if (in) c.allowed[id / 32] |= 1u << id % 32;
      if (!in) c.d.forbidden.push_back(static_cast<token_id>(id));
    }
  }
  c.s = std::make_unique<sampler>(p, vocab, c.d.prompt,
                                  sampler::limits{.max_tokens = 100,
                                                  .min_tokens = c.d.masked.empty() ? 0u : 100u,
                                                  .endings = c.d.masked,
                                                  .prompt = c.d.prompt});
  for (int i = 0; i < 10; ++i) {
    const auto id = static_cast<token_id>(random() % usual);
    c.d.output.push_back(id);
    c.s->learn(static_cast<float>(random() % 100) / 10);
    c.s->accept(id);
  }
  c.position = 30 + random() % 1000;
  return c;
}

// What a draw may give as well, where rounding decides: its definition with one number a little different.
// Calls f(probabilities) for each; stops where f returns true, and returns whether it did.
template <class F>
bool any_neighbour(const case_of& c, const std::vector<float>& row, const F& f) {
  const draw_site at = c.s->site_of(c.position);
  draw_site coin_at = at;
  coin_at.draw = 1;
  const double coin = uniform(c.d.p.seed, coin_at), mu = c.s->mu();
  if (f(c.d.probabilities(row, coin, mu))) return true;
  constexpr float sampling_params::*numbers[] = {&sampling_params::top_n_sigma,
                                                 &sampling_params::temperature,
                                                 &sampling_params::dynatemp_range,
                                                 &sampling_params::smoothing_factor,
                                                 &sampling_params::top_p,
                                                 &sampling_params::min_p,
                                                 &sampling_params::top_a,
                                                 &sampling_params::typical_p,
                                                 &sampling_params::tfs,
                                                 &sampling_params::xtc_threshold};
  for (const float by : {1 - 1e-5f, 1 + 1e-5f}) {
    for (const auto number : numbers) {
      definition other = c.d;
      other.p.*number *= by;
      if (f(other.probabilities(row, coin, mu))) return true;
    }
    if (f(c.d.probabilities(row, coin, mu * static_cast<double>(by)))) return true;
  }
  std::mt19937 random(1);
  for (int i = 0; i < 4; ++i) {  // ranks of tokens that are nearly equal
    auto jittered = row;
    for (float& x : jittered)
      if (random() % 2) x = std::nextafter(x, i % 2 ? inf : -inf);
    if (f(c.d.probabilities(jittered, coin, mu))) return true;
  }
  return false;
}

bool explained(const case_of& c, const std::vector<float>& row, token_id got) {
  const double u = uniform(c.d.p.seed, c.s->site_of(c.position));
  return any_neighbour(c, row, [&](const std::vector<double>& q) {
    return by_definition(q, u) == got || near_edge(q, u, 1e-5);
  });
}

bool explained(const case_of& c, const std::vector<float>& row, token_id got, float surprise) {
  return any_neighbour(c, row, [&](const std::vector<double>& q) {
    return std::abs(-std::log2(q[static_cast<std::size_t>(got)]) - static_cast<double>(surprise)) < 1e-3;
  });
}

draw asked(const case_of& c, std::uint32_t row, std::int32_t top_logprobs = -1) {
  draw d{.from = c.s.get(), .logits_row = row, .position = c.position, .top_logprobs = top_logprobs};
  d.allowed = c.allowed;
  return d;
}

struct tally {
  int equal = 0, explained = 0, surprises = 0;
};

// One begin() of many draws, each from a row of its own; every fourth is a plain one.
void compare_batch(std::mt19937& random, launched_draws& on, std::uint32_t vocab, tally& t) {
  constexpr std::uint32_t count = 16;
  std::vector<std::vector<float>> rows;
  std::vector<float> all;
  std::vector<case_of> cases;
  std::vector<draw> draws;
  for (std::uint32_t i = 0; i < count; ++i) {
    rows.push_back(random_row(random, vocab, random() % 6));
    if (random() % 40 == 0) rows.back()[random() % vocab] = random() % 2 ? std::nanf("") : inf;
    all.insert(all.end(), rows.back().begin(), rows.back().end());
    cases.push_back(random_case(random, vocab, i % 4 != 1));
    draws.push_back(asked(cases.back(), i));
  }
  on.set(all);
  device_draws conversion;
  std::vector<drawn> out(count);
  REQUIRE(conversion.begin(on, draws));
  REQUIRE(conversion.collect(on, out));
  sample_scratch scratch(vocab);
  std::vector<draw> plain;
  std::vector<token_id> plain_ids;
  for (std::uint32_t i = 0; i < count; ++i) {
    CAPTURE(i, vocab);
    const case_of& c = cases[i];
    const auto wanted = c.s->pick(rows[i], c.position, scratch, c.allowed);
    if (i % 4 == 1) {
      plain.push_back(draws[i]);
      plain_ids.push_back(out[i].id);
    }
    CHECK(out[i].fault == !sound(rows[i]));
    CHECK(out[i].nothing_left == (sound(rows[i]) && !wanted));
    REQUIRE((out[i].id >= 0) == wanted.has_value());
    if (!wanted) continue;
    if (out[i].id == *wanted) {
      ++t.equal;
    } else {
      ++t.explained;
      CAPTURE(out[i].id, *wanted);
      CHECK(explained(c, rows[i], out[i].id));
      continue;
    }
    if (c.d.p.mirostat_mode == 0 || c.d.p.temperature == 0) continue;
    ++t.surprises;
    CAPTURE(out[i].surprise, scratch.surprise);
    if (!(std::abs(out[i].surprise - scratch.surprise) < 1e-3f))
      CHECK(explained(c, rows[i], out[i].id, out[i].surprise));
  }
  std::vector<drawn> alone(plain.size());
  REQUIRE(conversion.begin(on, plain));
  REQUIRE(conversion.collect(on, alone));
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(alone[i].id == plain_ids[i]);
  std::vector<float> back(vocab);
  for (std::uint32_t i = 0; i < count; i += 5) {  // draws leave the rows as they are
    REQUIRE(on.read_logits(i, back.data()));
    CHECK(std::equal(back.begin(), back.end(), rows[i].begin(),
                     [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }));
  }
}

}  // namespace

TEST_CASE("cuda: draws with rare cuts are the host's, over every vocabulary") {
  cuda::device* const d = the_device();
  if (!d) return;
  for (const std::uint32_t vocab : {32u, 1000u, 32'000u, 128'256u, 152'064u}) {
    std::mt19937 random(static_cast<unsigned>(drawn_seed(vocab)));
    launched_draws on(*d, 16, vocab);
    tally t;
    const unsigned batches = rounds(64);
    for (unsigned batch = 0; batch < batches; ++batch) compare_batch(random, on, vocab, t);
    INFO("vocabulary " << vocab << ": " << t.equal << " equal, " << t.explained << " not, " << t.surprises
                       << " surprises");
    CHECK(t.equal >= 9 * t.explained);
    CHECK(t.equal > static_cast<int>(batches) * 12);
  }
}

TEST_CASE("cuda: each rare cut alone gives the host's token") {
  cuda::device* const d = the_device();
  if (!d) return;
  constexpr std::uint32_t vocab = 32'000;
  std::vector<std::pair<const char*, sampling_params>> ways;
  const auto add = [&](const char* name, const auto& set) {
    set(ways.emplace_back(name, sampling_params{}).second);
  };
  add("top_n_sigma", [](auto& p) { p.top_n_sigma = 1.2f; });
  add("dynatemp", [](auto& p) { p.dynatemp_range = 0.6f; });
  add("dynatemp from 0", [](auto& p) { p.dynatemp_range = 1.5f, p.dynatemp_exponent = 3; });
  add("smoothing", [](auto& p) { p.smoothing_factor = 0.3f; });
  add("smoothing with a curve", [](auto& p) { p.smoothing_factor = 0.3f, p.smoothing_curve = 4; });
  add("temperature_last", [](auto& p) { p.temperature_last = true, p.temperature = 1.7f, p.min_p = 0.01f; });
  add("top_a", [](auto& p) { p.top_a = 0.2f; });
  add("typical_p", [](auto& p) { p.typical_p = 0.8f; });
  add("tfs", [](auto& p) { p.tfs = 0.9f; });
  add("tfs of few", [](auto& p) { p.tfs = 0.9f, p.top_k = 50; });
  add("typical_p, then tfs", [](auto& p) { p.typical_p = 0.3f, p.tfs = 0.5f; });
  add("mirostat 1", [](auto& p) { p.mirostat_mode = 1; });
  add("mirostat 2", [](auto& p) { p.mirostat_mode = 2, p.mirostat_tau = 2; });
  add("XTC", [](auto& p) { p.xtc_probability = 0.5f, p.xtc_threshold = 0.02f; });
  add("XTC of all", [](auto& p) { p.xtc_probability = 1, p.xtc_threshold = 0, p.top_k = 9; });
  std::mt19937 random(7);
  launched_draws on(*d, 32, vocab);
  sample_scratch scratch(vocab);
  for (auto& [name, p] : ways) {
    CAPTURE(name);
    std::vector<std::vector<float>> rows;
    std::vector<float> all;
    std::vector<case_of> cases;
    std::vector<draw> draws;
    for (std::uint32_t i = 0; i < 32; ++i) {
      rows.push_back(random_row(random, vocab, i % 6));
      all.insert(all.end(), rows.back().begin(), rows.back().end());
      case_of c;
      c.d.p = p;
      c.d.p.seed = random();
      c.s = std::make_unique<sampler>(c.d.p, vocab, token_set(), sampler::limits{});
      c.position = i;
      cases.push_back(std::move(c));
      draws.push_back(asked(cases.back(), i));
    }
    on.set(all);
    device_draws conversion;
    std::vector<drawn> out(32);
    REQUIRE(conversion.begin(on, draws));
    REQUIRE(conversion.collect(on, out));
    int equal = 0;
    for (std::uint32_t i = 0; i < 32; ++i) {
      CAPTURE(i);
      const auto wanted = cases[i].s->pick(rows[i], i, scratch);
      REQUIRE(wanted.has_value());
      equal += out[i].id == *wanted;
      if (out[i].id != *wanted) CHECK(explained(cases[i], rows[i], out[i].id));
      if (p.mirostat_mode > 0 && out[i].id == *wanted)
        CHECK(out[i].surprise == Approx(scratch.surprise).margin(1e-3));
    }
    CHECK(equal >= 30);
  }
}

TEST_CASE("cuda: a rare draw does not depend on what is in its workspace, and tells its logprobs") {
  cuda::device* const d = the_device();
  if (!d) return;
  constexpr std::uint32_t vocab = 5003, count = 12;
  std::mt19937 random(9);
  std::vector<float> rows;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto row = random_row(random, vocab, i % 6);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  cuda::rare_order* orders = nullptr;
  cuda::draw_result* results = nullptr;
  float* surprises = nullptr;
  kernels::draw_logprobs* logprobs = nullptr;
  REQUIRE(cudaMallocHost(&orders, count * sizeof *orders) == cudaSuccess);
  REQUIRE(cudaMallocHost(&results, count * sizeof *results) == cudaSuccess);
  REQUIRE(cudaMallocHost(&surprises, count * sizeof *surprises) == cudaSuccess);
  REQUIRE(cudaMallocHost(&logprobs, count * sizeof *logprobs) == cudaSuccess);
  for (std::uint32_t i = 0; i < count; ++i) {
    cuda::rare_order o{};
    o.row = i;
    o.uniform = (random() % 1000) / 1000.0;
    o.top_logprobs = 5;
    o.place = count - 1 - i;
    o.rare.typical_p = i % 2 ? 0.9f : 1;
    o.rare.tfs = i % 3 ? 0.95f : 1;
    o.rare.mirostat_mode = i % 3;
    o.rare.mu = 8;
    if (i % 4 == 0) o.top_k = 100;
    orders[i] = o;
  }
  const on_device<float> logits(*d, rows);
  const on_device<std::int32_t> ids(*d, std::vector<std::int32_t>(count));
  std::vector<std::int32_t> first;
  std::vector<float> first_surprises;
  for (const float poison : {0.0f, std::nanf(""), inf, 1e30f}) {
    const on_device<float> room(*d, std::vector<float>(count * cuda::rare_room(vocab), poison));
    std::fill_n(surprises, count, -1.0f);
    cuda::sample_rare_rows(*d, orders, count, nullptr, nullptr, logits.get(), vocab, room.get(), results,
                           surprises, logprobs, ids.get());
    d->sync();
    REQUIRE(d->fault == "");
    const auto got = ids.back();
    if (first.empty()) {
      first = got;
      first_surprises.assign(surprises, surprises + count);
    }
    CHECK(got == first);
    CHECK(std::equal(first_surprises.begin(), first_surprises.end(), surprises));
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t at = orders[i].place;
      CHECK(results[at].state == kernels::draw_state::drawn);
      CHECK(results[at].id == got[at]);
      CHECK(logprobs[at].drawn.id == got[at]);
      CHECK(logprobs[at].count == 5);
      CHECK((surprises[at] == -1) == (orders[i].rare.mirostat_mode == 0));
    }
  }
  cudaFreeHost(orders);
  cudaFreeHost(results);
  cudaFreeHost(surprises);
  cudaFreeHost(logprobs);
}

TEST_CASE("cuda: a million draws with rare cuts have the probabilities of the definition") {
  cuda::device* const d = the_device();
  if (!d) return;
  constexpr std::uint32_t vocab = 1000, at_once = 256;
  std::mt19937 random(11);
  sampling_params with_choices, steered;
  with_choices.xtc_probability = 0.4f;
  with_choices.xtc_threshold = 0.05f;
  with_choices.top_n_sigma = 2;
  with_choices.min_p = 0.01f;
  steered.smoothing_factor = 0.2f;
  steered.typical_p = 0.95f;
  steered.tfs = 0.98f;
  steered.mirostat_mode = 2;
  steered.dynatemp_range = 0.5f;
  for (sampling_params p : {with_choices, steered}) {
    p.seed = random();
    const auto row = random_row(random, vocab, 1);
    launched_draws on(*d, at_once, vocab);
    on.set(row);
    sampler s(p, vocab, token_set(), {});
    std::vector<double> counts(vocab);
    device_draws conversion;
    std::vector<drawn> out(at_once);
    double all = 0;
    for (std::uint32_t begun = 0; begun < 1'000'000; begun += at_once) {
      std::vector<draw> draws;
      for (std::uint32_t i = 0; i < at_once; ++i)
        draws.push_back({.from = &s, .logits_row = 0, .position = begun + i});
      REQUIRE(conversion.begin(on, draws));
      REQUIRE(conversion.collect(on, out));
      for (const drawn& o : out) {
        REQUIRE(o.id >= 0);
        ++counts[static_cast<std::size_t>(o.id)];
        ++all;
      }
    }
    definition def{.p = p};
    const double share = static_cast<double>(p.xtc_probability);
    const auto with = def.probabilities(row, 0, s.mu()), without = def.probabilities(row, 1, s.mu());
    double squares = 0, groups = 0, rest = 0, rest_wanted = 0;
    for (std::uint32_t i = 0; i < vocab; ++i) {
      const double wanted = all * (share * with[i] + (1 - share) * without[i]);
      if (wanted == 0) CHECK(counts[i] == 0);
      if (wanted < 10) {
        rest += counts[i];
        rest_wanted += wanted;
        continue;
      }
      squares += (counts[i] - wanted) * (counts[i] - wanted) / wanted;
      ++groups;
    }
    if (rest_wanted > 0) squares += (rest - rest_wanted) * (rest - rest_wanted) / std::max(rest_wanted, 1.0);
    CAPTURE(squares, groups);
    REQUIRE(groups > 3);
    CHECK(squares < groups + 6 * std::sqrt(2 * groups) + 6);
  }
}

}  // namespace weir::tests::rare_draws_test
