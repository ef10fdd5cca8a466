#include "core/model/decoder_model.h"

#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "core/model/load.h"
#include "core/sample/steps.h"
#include "tests/support/drive.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::decoder_model_test {

using namespace weir::core;

namespace {

std::unique_ptr<model> load_toy(const tests::toy_options& o, std::shared_ptr<const kernels::backend> backend,
                                std::uint32_t pages) {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), o);
  auto m = load_model(dir.path().string(), std::move(backend)).value();
  m.weights->allocate_pages(pages).value();
  return std::move(m.weights);
}

tests::toy_options qwen3_like() {
  tests::toy_options o;
  o.architecture = "Qwen3ForCausalLM";
  o.qk_norm = o.tied = true;
  o.dtype = "BF16";
  return o;
}

tests::toy_options sliding() {
  tests::toy_options o;
  o.architecture = "MistralForCausalLM";
  o.config = {{"sliding_window", 20}};
  return o;
}

std::vector<token_id> random_ids(std::mt19937& r, std::size_t count) {
  std::vector<token_id> ids(count);
  for (auto& id : ids) id = static_cast<token_id>(r() % 256);
  return ids;
}

// Counts products by the weights that they read, and passes them on to the reference.
std::map<const void*, int> products;
std::shared_ptr<const kernels::backend> counting_backend() {
  static const auto real = kernels::reference_backend();
  auto counting = std::make_shared<kernels::backend>(*real);
  counting->do_linear = [](void* self, const kernels::linear& op) {
    ++products[op.w.data];
    real->do_linear(self, op);
  };
  return counting;
}

// Prompts of many lengths, each with the logits of every step of its own generation.
struct lane {
  std::vector<token_id> prompt;
  std::vector<token_id> output;
  std::vector<std::vector<float>> logits;
};

constexpr std::size_t steps = 12;
constexpr std::uint32_t pages_each = 3;

void generate_alone(model& m, lane& l) {
  tests::driven_sequence s(m, 0, pages_each);
  auto logits = s.feed(l.prompt, l.prompt.size());
  for (std::size_t i = 0; i < steps; ++i) {
    l.logits.emplace_back(logits.begin(), logits.end());
    l.output.push_back(tests::argmax(logits));
    logits = s.feed(std::span(&l.output.back(), 1), 1);
  }
}

// All at once: every step takes a random slice of each prompt that is not through, and a token of each that
// is.
void generate_together(model& m, std::vector<lane>& lanes, std::mt19937& r) {
  std::vector<tests::driven_sequence> sequences;
  for (std::size_t i = 0; i < lanes.size(); ++i)
    sequences.emplace_back(m, static_cast<page_id>(i * pages_each), pages_each);
  for (bool more = true; more;) {
    more = false;
    batch b;
    std::vector<std::size_t> drawing;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      lane& l = lanes[i];
      if (l.output.size() == steps) continue;
      more = true;
      const std::uint32_t at = sequences[i].position(), prompt = static_cast<std::uint32_t>(l.prompt.size());
      const std::uint32_t rows = at >= prompt ? 1 : std::min<std::uint32_t>(prompt - at, 1 + r() % 30);
      const bool draws = at + rows >= prompt;
      const auto first = static_cast<std::uint32_t>(b.tokens.size());
      for (std::uint32_t j = 0; j < rows; ++j)
        b.tokens.push_back(at >= prompt ? l.output.back() : l.prompt[at + j]);
      b.slices.push_back(
          sequences[i].slice(first, rows, draws ? static_cast<std::int32_t>(drawing.size()) : -1));
      if (draws) drawing.push_back(i);
      sequences[i].advance(rows);
    }
    b.logits_rows = static_cast<std::uint32_t>(drawing.size());
    if (!more) break;
    m.forward(b).value();
    for (std::uint32_t row = 0; row < drawing.size(); ++row) {
      const auto logits = m.logits(row);
      lanes[drawing[row]].logits.emplace_back(logits.begin(), logits.end());
      lanes[drawing[row]].output.push_back(tests::argmax(logits));
    }
  }
}

}  // namespace

TEST_CASE("a step runs each weight through one product, whatever the batch holds") {
  const auto m = load_toy({}, counting_backend(), 40);
  std::mt19937 r(1);
  std::vector<tests::driven_sequence> sequences;
  for (page_id i = 0; i < 8; ++i) sequences.emplace_back(*m, i * 5, 5);
  for (int step = 0; step < 3; ++step) {
    batch b;
    for (auto& s : sequences) {
      const std::uint32_t rows = step == 0 ? 1 + r() % 40 : 1;
      b.slices.push_back(s.slice(static_cast<std::uint32_t>(b.tokens.size()), rows,
                                 static_cast<std::int32_t>(b.logits_rows++)));
      for (const token_id id : random_ids(r, rows)) b.tokens.push_back(id);
      s.advance(rows);
    }
    products.clear();
    m->forward(b).value();
    CHECK(products.size() == 2 * 4 + 1);  // two layers of qkv, out, gate and up, down; then the logits
    for (const auto& [weight, count] : products) CHECK(count == 1);
  }
}

TEST_CASE(
    "single operations take what their largest step needs at warm-up, on the host too, or the model is "
    "refused") {
  static const auto real = kernels::reference_backend();
  static std::uint64_t room = 0, taken = 0;  // bytes: the most that is allocated; what was allocated
  taken = 0;
  auto device = std::make_shared<kernels::backend>(*real);
  device->on_host = GENERATE(false, true);
  device->do_allocate = [](void* self, std::uint64_t bytes) -> void* {
    if (taken + bytes > room) return nullptr;
    taken += bytes;
    return real->do_allocate(self, bytes);
  };
  room = std::uint64_t{1} << 40;
  const auto m = load_toy({}, device, 16);
  constexpr std::uint32_t batch_size = 3, prompt_rows = 50;
  room = taken;
  const auto refused = m->warm_up(batch_size, prompt_rows);
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::does_not_fit);
  room = std::uint64_t{1} << 40;
  m->warm_up(batch_size, prompt_rows).value();
  room = taken;

  std::mt19937 r(2);
  batch b;
  std::vector<tests::driven_sequence> sequences;
  for (page_id i = 0; i < 4; ++i) {
    sequences.emplace_back(*m, i * 4, 4);
    const std::uint32_t rows = i == 3 ? prompt_rows : 1;
    const auto first = static_cast<std::uint32_t>(b.tokens.size());
    b.slices.push_back(
        sequences.back().slice(first, rows, i == 3 ? -1 : static_cast<std::int32_t>(b.logits_rows++)));
    for (const token_id id : random_ids(r, rows)) b.tokens.push_back(id);
  }
  CHECK(m->forward(b).has_value());
  CHECK(taken == room);

  // More than that is a fault of the server's memory, and of no request.
  batch larger;
  larger.slices.push_back(sequences.back().slice(0, prompt_rows + batch_size + 1, -1));
  larger.tokens = random_ids(r, prompt_rows + batch_size + 1);
  const auto no_memory = m->forward(larger);
  REQUIRE(!no_memory);
  CHECK(no_memory.error().code == errc::unavailable);
}

TEST_CASE("a step that nobody draws from computes no logits") {
  const auto m = load_toy({}, counting_backend(), 4);
  tests::driven_sequence s(*m, 0, 4);
  batch b;
  b.tokens = {1, 2, 3};
  b.slices.push_back(s.slice(0, 3, -1));
  products.clear();
  m->forward(b).value();
  CHECK(products.size() == 2 * 4);
}

TEST_CASE("32 sequences at once give, one by one, the bits that each gives alone, on the reference backend") {
  for (const auto& options : {tests::toy_options{}, qwen3_like(), sliding()}) {
    const auto m = load_toy(options, kernels::reference_backend(), 32 * pages_each);
    std::mt19937 r(7);
    std::vector<lane> together(32);
    for (lane& l : together) l.prompt = random_ids(r, 1 + r() % 150);
    auto alone = together;
    generate_together(*m, together, r);
    CAPTURE(options.architecture);
    for (std::size_t i = 0; i < together.size(); ++i) {
      generate_alone(*m, alone[i]);
      REQUIRE(together[i].output == alone[i].output);
      REQUIRE(together[i].logits == alone[i].logits);
    }
  }
}

TEST_CASE("a model over the cpu backend agrees with the reference for every kind of weight") {
  for (const char* dtype : {"F32", "BF16", "F16"}) {
    tests::toy_options o;
    o.dtype = dtype;
    o.qkv_bias = o.out_bias = o.mlp_bias = true;
    std::mt19937 r(3);
    const auto prompt = random_ids(r, 100);
    const auto reference = load_toy(o, kernels::reference_backend(), 4),
               cpu = load_toy(o, kernels::cpu_backend(2), 4);
    tests::driven_sequence a(*reference, 0, 4), b(*cpu, 0, 4);
    for (const std::size_t rows : {50u, 1u, 49u}) {
      const auto part = std::span(prompt).subspan(a.position(), rows);
      const auto wanted = a.feed(part, rows), got = b.feed(part, rows);
      double largest = 0, worst = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        largest = std::max(largest, std::abs(double{wanted[i]}));
        worst = std::max(worst, std::abs(double{wanted[i]} - got[i]));
      }
      CAPTURE(dtype, rows, largest);
      CHECK(worst <= 1e-3 * largest);
    }
  }
}

TEST_CASE(
    "sampling goes through each sequence's own sampler, and a row without a maximum is that draw's fault") {
  const auto m = load_toy({}, kernels::reference_backend(), 8);
  tests::driven_sequence first(*m, 0, 2), second(*m, 2, 2);
  batch b;
  b.tokens = {5, 6};
  b.slices = {first.slice(0, 1, 0), second.slice(1, 1, 1)};
  b.logits_rows = 2;
  m->forward(b).value();
  sampling_params greedy, forced;
  greedy.temperature = forced.temperature = 0;
  forced.logit_bias = {{42, 1000.0f}};
  const token_set prompt{5};
  const sampler plain(greedy, tests::toy_vocab, prompt, {}), biased(forced, tests::toy_vocab, prompt, {});
  const draw draws[] = {{const_cast<sampler*>(&biased), 0, 1, 0, 1},
                        {const_cast<sampler*>(&plain), 1, 1, 0, 1}};
  drawn out[2];
  m->sample(draws, out).value();
  CHECK(out[0].id == 42);
  CHECK(out[1].id == tests::argmax(m->logits(1)));
  CHECK(!out[1].fault);
  const_cast<float&>(m->logits(0)[3]) = std::nanf("");
  m->sample(draws, out).value();
  CHECK(out[0].fault);
  CHECK(!out[1].fault);
}

TEST_CASE("a draw that forbids every token says that nothing is left, on the host and on a device") {
  std::vector<token_id> all(tests::toy_vocab);
  std::iota(all.begin(), all.end(), 0);
  for (const char* device : {"reference", "cpu", "cuda"}) {
    CAPTURE(device);
    const auto backend = make_backend(device, 2);
    if (!backend) {
      WARN("skipped on " << device << ": " << backend.error().message);
      continue;
    }
    const auto m = load_toy({}, *backend, 8);
    tests::driven_sequence first(*m, 0, 2), second(*m, 2, 2), third(*m, 4, 2);
    batch b;
    b.tokens = {5, 6, 7};
    b.slices = {first.slice(0, 1, 0), second.slice(1, 1, 1), third.slice(2, 1, 2)};
    b.logits_rows = 3;
    m->forward(b).value();
    const std::vector<std::uint32_t> only_3 = [] {
      std::vector<std::uint32_t> words((tests::toy_vocab + 31) / 32);
      words[0] = 1u << 3;
      return words;
    }();
    sampler early({}, tests::toy_vocab, {}, {.min_tokens = 1, .endings = all});
    sampler clash({}, tests::toy_vocab, {}, {.min_tokens = 1, .endings = {3}});
    sampler free({.temperature = 0}, tests::toy_vocab, {}, {});
    const draw draws[] = {{.from = &early, .logits_row = 0, .position = 1, .prompt_tokens = 1},
                          {.from = &clash,
                           .logits_row = 1,
                           .position = 1,
                           .prompt_tokens = 1,
                           .top_logprobs = 2,
                           .allowed = only_3},
                          {.from = &free, .logits_row = 2, .position = 1, .prompt_tokens = 1}};
    drawn out[3];
    m->sample(draws, out).value();
    for (int i = 0; i < 2; ++i) CHECK((out[i].nothing_left && !out[i].fault && out[i].id == -1));
    CHECK((!out[2].nothing_left && !out[2].fault));
    CHECK(out[2].id == tests::argmax(m->logits(2)));
    CHECK(sound(m->logits(0)));  // the row is as it was
  }
}

// On the host, and on a device where there is one: a page's bytes leave it and come back into another.
TEST_CASE("a page that was saved and restored elsewhere holds the same keys and values") {
  std::mt19937 r(5);
  for (const char* device : {"reference", "cpu", "cuda"}) {
    CAPTURE(device);
    const auto backend = make_backend(device, 2);
    if (!backend) {
      WARN("skipped on " << device << ": " << backend.error().message);
      continue;
    }
    for (const char* dtype : {"F32", "BF16"}) {
      tests::toy_options o;
      o.dtype = dtype;
      const auto m = load_toy(o, *backend, 6);
      const auto prompt = random_ids(r, page_tokens + 30), next = random_ids(r, 1);
      tests::driven_sequence first(*m, 0, 3), other(*m, 3, 3);
      first.feed(prompt, prompt.size());
      m->allocate_host_pages(3).value();
      for (const page_id p : {2, 1}) {  // a driven sequence begins with its last page
        const auto slot = static_cast<std::uint32_t>(p);
        m->save_page(p, slot).value();
        m->save_page(0, 0).value();  // a save of another page beside it
        m->restore_page(p + 3, 0).value();
        m->restore_page(p + 3, slot).value();
      }
      const auto wanted = first.feed(next, 1);
      const std::vector<float> copy(wanted.begin(), wanted.end());
      other.advance(static_cast<std::uint32_t>(prompt.size()));
      const auto got = other.feed(next, 1);
      CHECK(std::vector<float>(got.begin(), got.end()) == copy);
    }
  }
}

}  // namespace weir::tests::decoder_model_test
