// A model that sleeps: it gives its memory back, wakes with the weights that it had, and says so where it
// cannot. The device of these tests ends the process when memory that was given back is touched.
#include <catch2/catch.hpp>

#include "core/model/decoder_model.h"
#include "core/model/load.h"
#include "core/model/weight_samples.h"
#include "kernels/random_weights.h"
#include "tests/support/drive.h"
#include "tests/support/plain_layer.h"
#include "tests/support/sleeping_device.h"

namespace weir::tests::sleep_test {

using namespace weir::core;
using Catch::Matchers::Contains;
using device_of_test = tests::sleeping_device;

namespace {

constexpr std::uint32_t pages = 4;

random_model dense(const char* type, std::uint32_t window = 0) {
  random_model m = parse_random_model(std::string("tiny-110m:") + type, 512).value();
  m.config.shape.hidden = 256;
  m.config.shape.vocab = 300;
  set_layers(m.config, 2, tests::plain_layer(512, 4, 2, 64));
  m.config.shape.layers[0].mixer.rule.window = window;
  return m;
}

random_model mixture(const char* type) {
  random_model m = parse_random_model(std::string("tiny-moe-200m:") + type, 512).value();
  set_layers(m.config, 2, m.config.shape.layers.front());
  m.config.shape.vocab = 300;
  return m;
}

std::unique_ptr<model> make(const random_model& shape, const std::shared_ptr<const kernels::backend>& on) {
  auto m = std::move(make_random_model(shape, on, 5).value().weights);
  m->allocate_pages(pages).value();
  return m;
}

std::vector<token_id> prompt() {
  std::vector<token_id> ids;
  for (token_id i = 0; i < 90; ++i) ids.push_back(i * 37 % 300);
  return ids;
}

// The logits of all steps of a sequence, in slices of a prompt.
std::vector<float> logits_of(model& m) {
  std::vector<float> out;
  tests::driven_sequence s(m, 0, 2);
  const auto ids = prompt();
  for (std::size_t at = 0; at < ids.size(); at += 30) {
    const auto row = s.feed(std::span(ids).subspan(at, 30), 30);
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

// The areas of the weights that make() gives a model.
std::vector<weight_area> areas_of(const random_model& shape) {
  return random_weights(shape.config, shape.type, 5, kernels::reference_backend()).value().areas;
}

}  // namespace

TEST_CASE("a model that slept computes what it computed before, bit for bit, and gave its memory back") {
  const auto real = GENERATE(kernels::reference_backend(), kernels::cpu_backend(2));
  for (const auto& shape :
       {dense("f32"), dense("bf16", 40), dense("q8_0"), dense("q4_k"), mixture("bf16"), mixture("q4_0")}) {
    CAPTURE(real->name, kernels::name(shape.type), shape.config.architecture);
    const auto on = tests::make_sleeping_device(real);
    const auto m = make(shape, on);
    const auto wanted = logits_of(*m);
    const std::uint64_t taken = device_of_test::now().taken;
    const std::uint64_t slept = m->info().weight_bytes + pages * m->info().page_bytes;
    REQUIRE(m->sleep_bytes().has_value());
    CHECK(*m->sleep_bytes() > m->info().weight_bytes);
    CHECK(*m->sleep_bytes() < m->info().weight_bytes * 11 / 10);
    for (int round = 0; round < 3; ++round) {
      m->sleep().value();
      CHECK(device_of_test::now().taken == taken - slept);
      m->wake().value();
      CHECK(device_of_test::now().taken == taken);
      CHECK(device_of_test::now().given_back.empty());
      CHECK(logits_of(*m) == wanted);
    }
    m->sleep().value();  // is destroyed asleep
  }
}

TEST_CASE("a model of the host keeps its weights where they are while it sleeps, and gives its pages back") {
  for (const auto& on : {kernels::reference_backend(), kernels::cpu_backend(2)}) {
    const auto m = make(dense("bf16"), on);
    const auto wanted = logits_of(*m);
    CHECK(m->sleep_bytes() == 0u);
    m->sleep().value();
    m->wake().value();
    CHECK(logits_of(*m) == wanted);
  }
}

TEST_CASE("pages in host memory stay while a model sleeps, and come back to it") {
  const auto m = make(dense("bf16"), tests::make_sleeping_device(kernels::reference_backend()));
  m->allocate_host_pages(2).value();
  const auto ids = prompt();
  tests::driven_sequence before(*m, 0, 2);
  before.feed(std::span(ids).first(64), 64);
  m->save_page(1, 0).value();  // the first page of a sequence is the last of its list
  const auto rest = before.feed(std::span(ids).subspan(64), 26);
  const std::vector<float> wanted(rest.begin(), rest.end());
  m->sleep().value();
  m->wake().value();
  m->restore_page(1, 0).value();
  tests::driven_sequence after(*m, 0, 2);
  after.advance(64);
  const auto found = after.feed(std::span(ids).subspan(64), 26);
  CHECK(std::vector<float>(found.begin(), found.end()) == wanted);
}

TEST_CASE("a call for the state that a model is in changes nothing") {
  const auto m = make(dense("bf16"), tests::make_sleeping_device(kernels::reference_backend()));
  const auto wanted = logits_of(*m);
  m->wake().value();
  m->sleep().value();
  const std::uint64_t taken = device_of_test::now().taken;
  m->sleep().value();
  CHECK(device_of_test::now().taken == taken);
  m->wake().value();
  m->wake().value();
  CHECK(logits_of(*m) == wanted);
}

TEST_CASE("what would use the memory of a model that sleeps is refused") {
  const auto m = make(dense("bf16"), tests::make_sleeping_device(kernels::reference_backend()));
  m->allocate_host_pages(1).value();
  const auto wanted = logits_of(*m);
  m->sleep().value();
  batch b;
  b.tokens = {1};
  const auto refused = [](const result<void>& r) {
    REQUIRE(!r);
    CHECK(r.error().code == errc::internal);
    CHECK_THAT(r.error().message, Contains("sleeps"));
  };
  refused(m->forward(b));
  refused(m->allocate_pages(3));
  refused(m->save_page(0, 0));
  refused(m->restore_page(0, 0));
  refused(m->warm_up(1, 16));
  m->wake().value();
  CHECK(logits_of(*m) == wanted);
}

TEST_CASE("where host memory is short a model does not sleep, and goes on") {
  const auto m = make(dense("bf16"), tests::make_sleeping_device(kernels::reference_backend()));
  const auto wanted = logits_of(*m);
  auto& d = device_of_test::now();
  const std::uint64_t taken = d.taken;
  d.host_short = true;
  const auto refused = m->sleep();
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::does_not_fit);
  CHECK_THAT(refused.error().message, Contains(std::to_string(*m->sleep_bytes())));
  CHECK(d.taken == taken);
  CHECK(logits_of(*m) == wanted);
  d.host_short = false;
  m->sleep().value();
  d.host_short = true;  // the memory of the first sleep is still there
  m->wake().value();
  m->sleep().value();
  m->wake().value();
  CHECK(logits_of(*m) == wanted);
}

TEST_CASE("where the device's memory is short a model sleeps on, with all of its memory given back") {
  const auto m = make(dense("bf16"), tests::make_sleeping_device(kernels::reference_backend()));
  const auto wanted = logits_of(*m);
  auto& d = device_of_test::now();
  m->sleep().value();
  const std::uint64_t asleep = d.taken, weights = m->info().weight_bytes;
  for (const std::uint64_t room : {std::uint64_t{0}, weights - 1, weights, weights + 1}) {
    d.room = asleep + room;
    const auto refused = m->wake();
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::does_not_fit);
    CHECK(d.taken == asleep);
    CHECK(d.given_back.size() == 1);  // the weights; the pool's parts are counted above
  }
  d.room = asleep + weights + pages * m->info().page_bytes;
  m->wake().value();
  CHECK(logits_of(*m) == wanted);
}

TEST_CASE("a byte of any matrix or vector that comes back wrong is found where it is sampled") {
  const auto shape = dense("bf16");
  const auto areas = areas_of(shape);
  REQUIRE(areas.size() > 10);
  for (const weight_area& a : areas) {
    const auto m = make(shape, tests::make_sleeping_device(kernels::reference_backend()));
    auto& d = device_of_test::now();
    const auto places = places_of(a, kernels::mix_bits(1));  // of the first sleep
    const std::uint64_t at = places.first + (a.first % places.count) * places.stride + a.first / 256 % 64;
    m->sleep().value();
    REQUIRE(d.given_back.size() == 1);
    auto* weights = d.given_back.begin()->first;
    d.flip = weights + at;
    CAPTURE(a.first, a.bytes, at);
    const auto broken = m->wake();
    REQUIRE(!broken);
    CHECK(broken.error().code == errc::internal);
    CHECK_THAT(broken.error().message, Contains("bytes " + std::to_string(a.first) + " to"));
    batch b;
    b.tokens = {1};
    for (const auto& refused : {m->forward(b), m->sleep(), m->wake(), m->allocate_pages(1)}) {
      REQUIRE(!refused);
      CHECK(refused.error().code == errc::internal);
    }
  }
}

TEST_CASE("areas cover all weights, and each has places for each of its tensors, which move with the seed") {
  for (const auto& shape : {dense("bf16"), mixture("q4_0")}) {
    const auto weights = random_weights(shape.config, shape.type, 5, kernels::reference_backend()).value();
    std::uint64_t end = 0, tensors = 0, moved = 0;
    for (const weight_area& a : weights.areas) {
      CAPTURE(a.first, a.bytes, a.tensors);
      CHECK(a.first == end);
      end = a.first + a.bytes;
      tensors += a.tensors;
      for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const auto p = places_of(a, kernels::mix_bits(seed));
        REQUIRE((p.first >= a.first && p.stride >= sample_bytes));
        REQUIRE(p.first + (p.count - 1) * p.stride + sample_bytes <= end);
        REQUIRE((p.count == 16 * a.tensors || p.count * sample_bytes == a.bytes));
        REQUIRE(p.first % 16 == 0);
        moved += p.first != places_of(a, 0).first;
      }
    }
    CHECK(end == weights.memory.size());
    CHECK(moved > 100);
    const std::uint64_t layers = 2, experts = shape.config.shape.layers[0].mlp.is_mixture() ? 32 : 1;
    CHECK(tensors >= layers * (4 + 3 * experts + 2) + 2);
  }
}

TEST_CASE("a device that cannot give memory back refuses sleep by name") {
  auto table = std::make_shared<kernels::backend>(*kernels::reference_backend());
  table->do_give_back = nullptr;
  table->do_take_again = nullptr;
  const auto m = make(dense("bf16"), table);
  const auto wanted = logits_of(*m);
  CHECK(!m->sleep_bytes());
  for (const auto& refused : {m->sleep(), m->wake()}) {
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::not_supported);
    CHECK_THAT(refused.error().message, Contains("LlamaForCausalLM cannot sleep"));
  }
  CHECK(logits_of(*m) == wanted);
}

TEST_CASE("sleep and wake give way to other models, and to nobody afterwards") {
  const auto on = tests::make_sleeping_device(make_backend("reference", 1).value());
  const auto m = make(dense("bf16"), on);
  const std::atomic<bool> busy{true};
  m->sleep(&busy).value();
  m->wake(&busy).value();
  CHECK(device_of_test::now().ways == std::vector<const std::atomic<bool>*>{&busy, nullptr, &busy, nullptr});
}

}  // namespace weir::tests::sleep_test
