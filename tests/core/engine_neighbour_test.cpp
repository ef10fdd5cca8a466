// A model's tokens are its own, bit for bit, whatever a second model does beside it on the same device: it
// works, sleeps, shrinks, grows and wakes, on another thread.
#include <thread>

#include "core/model/decoder_model.h"
#include "core/model/load.h"
#include "tests/support/budget.h"
#include "tests/support/engine_rig.h"
#include "tests/support/plain_layer.h"
#include "tests/support/seed.h"

namespace weir::tests::engine_neighbour_test {

using namespace weir::core;

namespace {

constexpr std::uint32_t vocab = 300, pages = 48, longest = 288;
constexpr int jobs = 5;

using backend_ptr = std::shared_ptr<const kernels::backend>;

// An engine with a real decoder of random weights, on a backend of its own.
struct house : engine_rig {
  house(const backend_ptr& on, std::uint64_t seed)
      : engine_rig(decoder(on, seed), letters(vocab), config()) {}
  static engine_config config() {
    auto c = small_config();
    c.max_batch = 4;
    c.kv_pages = pages;
    c.max_seq_len = longest;
    return c;
  }
  static std::unique_ptr<model> decoder(const backend_ptr& on, std::uint64_t seed) {
    auto shape = parse_random_model("tiny-110m:bf16", 512).value();
    shape.config.shape.hidden = 256;
    shape.config.shape.vocab = vocab;
    set_layers(shape.config, 2, plain_layer(512, 4, 2, 64));
    return std::move(make_random_model(shape, on, seed).value().weights);
  }
  std::vector<std::shared_ptr<recording_sink>> begin() {
    std::vector<std::shared_ptr<recording_sink>> out;
    for (int i = 0; i < jobs; ++i) {
      auto j = job(static_cast<std::uint64_t>(i + 1), 40, static_cast<std::uint32_t>(20 + 50 * i));
      j.sampling.temperature = 0.9;
      j.sampling.seed = static_cast<std::uint64_t>(100 + i);
      out.push_back(submit(std::move(j)));
    }
    return out;
  }
};

// The pool of an engine without jobs shrinks to the fewest steps that its longest sequence leaves it, and
// grows again. False: it could not.
bool breathe(engine& e) {
  const auto all = e.pages(), step = e.page_step();
  if (step == 0) return false;
  const auto least = (static_cast<std::int32_t>(pages_for(longest)) + step - 1) / step * step;
  const auto gone = e.let_go_of_pages(least);
  if (least >= all || !gone || !*gone || !e.set_pages(least)) return false;
  e.use_pages(least);
  if (!e.set_pages(all)) return false;
  e.use_pages(all);
  return true;
}

// On a thread of its own, where nothing may be checked. REQUIRES: the engine has no job
bool sleep_and_wake(engine& e) { return breathe(e) && e.sleep() && e.wake() && breathe(e); }

}  // namespace

TEST_CASE("neighbours: tokens are those of a model alone, while a second one sleeps, shrinks and wakes") {
  const bool on_cpu = GENERATE(true, false);
  const auto device = [on_cpu] { return on_cpu ? kernels::cpu_backend(2) : kernels::reference_backend(); };
  std::vector<std::vector<token_id>> alone[2];
  for (const int which : {0, 1}) {
    house h(device(), static_cast<std::uint64_t>(5 + which));
    const auto all = h.begin();
    h.run();
    for (const auto& s : all) alone[which].push_back(s->ids());
  }
  REQUIRE(!alone[0][0].empty());
  CHECK(alone[0] != alone[1]);

  house a(device(), 5), b(device(), 6);
  for (unsigned round = 0; round < rounds(2); ++round) {
    const auto mine = a.begin(), theirs = b.begin();
    for (int i = 0; i < 5; ++i) a.engine->step(), b.engine->step();  // both work
    b.run();
    bool well = false;
    std::thread naps([&] { well = sleep_and_wake(*b.engine); });
    while (!a.engine->idle()) a.engine->step();  // beside the naps
    naps.join();
    CHECK(well);
    for (int i = 0; i < jobs; ++i) {
      CHECK(mine[static_cast<std::size_t>(i)]->ids() == alone[0][static_cast<std::size_t>(i)]);
      CHECK(theirs[static_cast<std::size_t>(i)]->ids() == alone[1][static_cast<std::size_t>(i)]);
    }
    CHECK(a.engine->check_integrity().empty());
    CHECK(b.engine->check_integrity().empty());
  }
}

}  // namespace weir::tests::engine_neighbour_test
