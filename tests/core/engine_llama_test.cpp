#include <random>

#include "core/model/load.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tests/support/data.h"
#include "tests/support/engine_rig.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::engine_llama_test {

using namespace weir::core;

TEST_CASE("32 jobs over real layers give, job by job, what each gives alone, on the reference backend") {
  const temporary_dir dir;
  write_toy_directory(dir.path());
  auto c = small_config();
  c.prefill_rows = 48;  // prompts of up to 150 tokens are cut in several places
  auto loaded = load_model(dir.path().string(), make_backend("reference", 1).value());
  INFO((loaded ? std::string() : loaded.error().message));
  REQUIRE(loaded.has_value());
  engine_rig rig(std::move(loaded->weights), *load_tokenizer(dir.path().string()), c);

  std::mt19937 random(11);
  std::vector<job> jobs;
  for (std::uint64_t n = 0; n < 32; ++n) {
    auto j = rig.job(n, 8 + n % 20, 1 + random() % 150);
    j.sampling.temperature = n % 3 == 0 ? 0.0f : 0.8f;
    if (n % 2 == 0) j.sampling.top_p = 0.9f;
    if (n % 4 == 1) j.sampling.repetition_penalty = 1.2f;
    if (n % 7 == 1) j.sampling.mirostat_mode = 1 + n % 2;
    if (n % 11 == 2) j.sampling.dry_multiplier = 1;
    j.ignore_eos = n % 5 != 0;
    jobs.push_back(j);
  }
  std::vector<std::vector<token_id>> alone;
  for (const auto& j : jobs) alone.push_back(rig.solo(j));

  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (const auto& j : jobs) {  // they join while others run
    sinks.push_back(rig.submit(j));
    for (auto steps = random() % 3; steps > 0; --steps) rig.step();
  }
  rig.run();
  for (std::size_t n = 0; n < jobs.size(); ++n) {
    INFO("job " << n);
    CHECK(!alone[n].empty());
    CHECK(sinks[n]->ids() == alone[n]);
  }
}

}  // namespace weir::tests::engine_llama_test
