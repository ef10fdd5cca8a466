// The pool of a model shrinks and grows where it is: its bytes are those of its pages, what stays is not
// touched, and what comes is zeroed. The device of these tests ends the process when memory that was given
// back is touched.
#include <catch2/catch.hpp>
#include <random>

#include "core/model/load.h"
#include "core/model/pool_memory.h"
#include "tests/support/budget.h"
#include "tests/support/drive.h"
#include "tests/support/plain_layer.h"
#include "tests/support/seed.h"
#include "tests/support/sleeping_device.h"

namespace weir::tests::pool_test {

using namespace weir::core;
using Catch::Matchers::Contains;
using device_of_test = tests::sleeping_device;

namespace {

random_model dense() {
  random_model m = parse_random_model("tiny-110m:bf16", 512).value();
  m.config.shape.hidden = 256;
  m.config.shape.vocab = 300;
  set_layers(m.config, 2, tests::plain_layer(512, 4, 2, 64));
  return m;
}

std::unique_ptr<model> make(const std::shared_ptr<const kernels::backend>& on, std::uint32_t pages,
                            kv_choice kv = {}) {
  auto m = std::move(make_random_model(dense(), on, 5, kv).value().weights);
  m->allocate_pages(pages).value();
  return m;
}

// The logits of a sequence in the pages `first` to `first` + 1.
std::vector<float> logits_in(model& m, page_id first) {
  tests::driven_sequence s(m, first, 2);
  std::vector<token_id> ids;
  for (token_id i = 0; i < 90; ++i) ids.push_back(i * 37 % 300);
  const auto row = s.feed(ids, 30);
  return {row.begin(), row.end()};
}

}  // namespace

TEST_CASE("a pool that shrinks gives the bytes of its pages back, and computes on in those that stay") {
  for (const char* type : {"f32", "q8"}) {
    const auto on = tests::make_sleeping_device(kernels::reference_backend());
    const auto m = make(on, 32, parse_kv_type(type).value());
    const auto step = static_cast<std::uint32_t>(m->page_step());
    CAPTURE(type, step);
    REQUIRE((step >= 1 && 32 % step == 0));
    CHECK((m->pages() == 32 && m->most_pages() == 32));
    const auto wanted = logits_in(*m, 0);
    const std::uint64_t page = m->info().page_bytes, full = device_of_test::now().taken;  // with workspaces
    std::mt19937_64 random(weir::tests::drawn_seed(3));
    for (unsigned i = 0; i < weir::tests::rounds(60); ++i) {
      const auto to = static_cast<std::int32_t>(2 + random() % 31);
      m->set_pages(to).value();
      const std::uint32_t held = (static_cast<std::uint32_t>(to) + step - 1) / step * step;
      REQUIRE(m->pages() == to);
      REQUIRE(device_of_test::now().taken == full - (32 - held) * page);
      REQUIRE(logits_in(*m, to - 2) == wanted);
      if (random() % 4 != 0) continue;
      m->sleep().value();
      REQUIRE(device_of_test::now().taken == full - 32 * page - m->info().weight_bytes);
      m->wake().value();
      REQUIRE(m->pages() == to);
      REQUIRE(device_of_test::now().taken == full - (32 - held) * page);
      REQUIRE(logits_in(*m, to - 2) == wanted);
    }
  }
}

TEST_CASE("a pool grows to the pages that it has addresses for, all of a step or nothing") {
  const auto on = tests::make_sleeping_device(kernels::reference_backend());
  const auto m = std::move(make_random_model(dense(), on, 5).value().weights);
  auto& d = device_of_test::now();
  const std::uint64_t weights = d.taken, page = m->info().page_bytes;
  m->reserve_pages(64).value();
  m->allocate_pages(4).value();
  CHECK((m->pages() == 4 && m->most_pages() == 64));
  CHECK(d.taken == weights + 4 * page);
  const auto wanted = logits_in(*m, 2);
  const std::uint64_t taken = d.taken;
  for (const std::uint64_t room : {std::uint64_t{0}, page - 1, page, 3 * page - 1}) {
    d.room = taken + room;
    const auto refused = m->set_pages(7);
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::does_not_fit);
    CHECK(d.taken == taken);
    CHECK(m->pages() == 4);
    CHECK(logits_in(*m, 2) == wanted);
  }
  d.room = taken + 60 * page;
  m->set_pages(64).value();
  CHECK(logits_in(*m, 62) == wanted);
  for (const std::int32_t pages : {0, -1, 65}) CHECK(!m->set_pages(pages));
  m->allocate_pages(8).value();  // the reservation was for one pool
  CHECK(m->most_pages() == 8);
}

TEST_CASE("pages that come are zeroed, and pages that are moved keep what they hold") {
  for (const auto& on : {kernels::reference_backend(), kernels::cpu_backend(2)}) {
    pool_memory pool(on, {{.bytes = 4096, .count = 4}, {.first = 4 * 4096, .bytes = 8192, .count = 2}});
    REQUIRE(pool.allocate(16, 16));
    REQUIRE((pool.changes() && pool.page_bytes() == 4 * 4096 + 2 * 8192));
    const auto each = [&](page_id first, page_id end, auto f) {
      for (const auto& p : pool.parts())
        for (page_id page = first; page < end; ++page)
          for (std::uint32_t run = 0; run < p.count; ++run)
            for (std::uint64_t i = 0; i < p.bytes; ++i) f(pool.piece(p, page)[run * p.stride + i], page);
    };
    each(0, 16, [](std::byte& b, page_id page) { b = static_cast<std::byte>(page + 1); });
    REQUIRE(pool.resize(5));
    REQUIRE(pool.resize(12));
    bool right = true;
    each(0, 12, [&](std::byte& b, page_id page) {
      right &= b == (page < 5 ? static_cast<std::byte>(page + 1) : std::byte{0});
    });
    CHECK(right);
  }
  const auto m = make(kernels::reference_backend(), 8);
  const auto wanted = logits_in(*m, 6);
  tests::driven_sequence s(*m, 6, 2);
  std::vector<token_id> ids;
  for (token_id i = 0; i < 90; ++i) ids.push_back(i * 37 % 300);
  s.feed(std::span(ids).first(64), 30);
  const page_copy moves[] = {{7, 1}, {6, 0}};
  m->move_pages(moves).value();
  m->set_pages(2).value();
  tests::driven_sequence moved(*m, 0, 2);
  moved.advance(64);
  const auto row = moved.feed(std::span(ids).subspan(64), 26);
  CHECK(std::vector<float>(row.begin(), row.end()) == wanted);
}

TEST_CASE("a pool that cannot change says so by name") {
  const auto m = make(kernels::reference_backend(), 1);
  CHECK(m->page_step() == 0);
  const auto refused = m->set_pages(1);
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::not_supported);
  CHECK_THAT(refused.error().message, Contains("a pool of 1 pages of LlamaForCausalLM cannot change"));
  auto table = std::make_shared<kernels::backend>(*kernels::reference_backend());
  table->do_reserve = nullptr;
  const auto fixed = make(table, 32);
  CHECK(fixed->page_step() == 0);
  CHECK(fixed->set_pages(5).error().code == errc::not_supported);
  CHECK(fixed->reserve_pages(64).error().code == errc::not_supported);
  CHECK(logits_in(*fixed, 30) == logits_in(*make(kernels::reference_backend(), 4), 0));
}

}  // namespace weir::tests::pool_test
