// Each family through the engine: many jobs at once, in chunks, with prefixes found and sequences preempted,
// as the reference says.
#include <sstream>

#include "core/model/load.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tests/support/budget.h"
#include "tests/support/engine_rig.h"
#include "tests/support/golden.h"
#include "tests/support/plain_layer.h"

namespace weir::tests::engine_families_test {

using namespace weir::core;

namespace {

// Folders of models-families: dense models, then mixtures.
constexpr const char* folders =
    "gemma2 gemma3 phi4mini-partial phi3-longrope-long olmo2 granite smollm3 cohere cohere2 glm4 "
    "ministral3-wrapped seed-oss exaone4 ernie4_5 nemotron llama-yarn2 "
    "qwen3-moe qwen2-moe mixtral granite-moe glm4-moe minimax-m2 ernie4_5-moe gpt-oss gpt-oss-mxfp4";

std::vector<std::filesystem::path> families() {
  auto out = bundled_families();
  std::istringstream names(folders);
  for (std::string name; names >> name;)
    if (const auto dir = data_dir() / "models-families" / name; std::filesystem::exists(dir))
      out.push_back(dir);
  return out;
}

// A pool that holds the longest sequence and little more.
engine_config crowded() {
  engine_config c = small_config();
  c.max_batch = 6;
  c.kv_pages = 9;
  c.host_pages = 8;
  c.prefill_rows = 24;
  return c;
}

void check_family(const std::filesystem::path& dir, std::uint64_t& preemptions, std::uint64_t& hits) {
  CAPTURE(dir.filename());
  auto loaded = load_model(dir.string(), make_backend("cpu", 2).value()).value();
  engine_rig rig(std::move(loaded.weights), *load_tokenizer(dir.string()), crowded());
  const golden g = read_golden(dir);
  std::vector<std::pair<std::shared_ptr<recording_sink>, const golden_generation*>> asked;
  std::uint64_t number = 0;
  for (int round = 0; round < 2; ++round)
    for (const auto& one : g.generations) {
      auto j = rig.job(++number, 250, 1);
      j.prompt = std::vector<token_id>(one.prompt_ids.begin(), one.prompt_ids.end());
      j.sampling.temperature = 0;
      j.ignore_eos = true;
      asked.emplace_back(rig.submit(j), &one);
      for (std::uint64_t i = 0; i < number % 4; ++i) rig.step();
    }
  rig.run();
  for (const auto& [sink, one] : asked) {
    const auto certain = static_cast<std::ptrdiff_t>(one->certain());
    REQUIRE(sink->ids().size() == 250);
    CHECK(std::equal(one->greedy_ids.begin(), one->greedy_ids.begin() + certain, sink->ids().begin()));
  }
  preemptions += rig.engine->counts().preemptions;
  hits += rig.engine->counts().prefix_hits;
}

// A crowd of jobs, preempted time and again, against each job alone in an engine with room.
void check_crowd(const random_model& m) {
  const auto on = make_backend("cpu", 1).value();
  const auto made = [&] { return std::move(make_random_model(m, on).value().weights); };
  engine_rig roomy(made(), letters(61), small_config());
  engine_rig small(made(), letters(61), crowded());
  const auto job_of = [](const engine_rig& rig, std::uint64_t n) {  // some have one prompt
    auto j = rig.job(n, 200 + static_cast<std::uint32_t>(n % 7), 70);
    j.prompt = rig.job(n % 7, 1, 70).prompt;
    return j;
  };
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (std::uint64_t n = 0; n < 12; ++n) {
    sinks.push_back(small.submit(job_of(small, n)));
    small.step();
  }
  small.run();
  CHECK(small.engine->counts().preemptions > 0);
  for (std::uint64_t n = 0; n < 12; ++n) {
    CAPTURE(n);
    CHECK(sinks[n]->ids() == roomy.solo(job_of(roomy, n)));
  }
}

}  // namespace

TEST_CASE("families beside each other in a crowded engine generate what the reference says") {
  std::uint64_t preemptions = 0, hits = 0;
  for (const auto& dir : families()) check_family(dir, preemptions, hits);
  CHECK(preemptions > 0);
  CHECK(hits > 0);
}

TEST_CASE("layers whose keys and values have two sizes keep their pages apart") {
  random_model m = parse_random_model("tiny-110m:f32", 512).value();
  model_config& c = m.config;
  c.shape.hidden = 96;
  c.shape.vocab = 61;
  set_layers(c, 4, plain_layer(64, 4, 2, 24));
  // Layers 1 and 2 have one key head of another size, as layers of a second kind do.
  for (std::uint32_t i : {1u, 2u}) {
    auto& a = c.shape.layers[i].mixer;
    a.kv_heads = 1;
    a.head_dim = 40;
    a.rotary = -1;
    a.group = 1;
    a.place = i - 1;
  }
  c.shape.layers[3].mixer.place = 1;
  c.shape.groups = {{2, 24, 2}, {1, 40, 2}};
  check_crowd(m);
}

TEST_CASE("mixtures of experts in a crowded engine generate what each job generates alone") {
  random_model m = parse_random_model("tiny-110m:f32", 512).value();
  model_config& c = m.config;
  c.shape.hidden = 96;
  c.shape.vocab = 61;
  kernels::layer_shape sparse = plain_layer(64, 4, 2, 24);
  sparse.mixer.sinks = true;
  sparse.mlp.inter = 40;
  sparse.mlp.router = {.experts = 9, .chosen = 3, .sigmoid = true, .choice_bias = true, .factor = 1.5f};
  sparse.mlp.shared = 24;
  sparse.mlp.shared_gate = true;
  set_layers(c, 3, sparse);
  c.shape.layers[1].mlp = plain_layer(64, 4, 2, 24).mlp;  // a dense one between them
  c.shape.layers[2].mlp.router = {.experts = 32, .chosen = 8, .renormalised = false};
  check_crowd(m);
}

}  // namespace weir::tests::engine_families_test
