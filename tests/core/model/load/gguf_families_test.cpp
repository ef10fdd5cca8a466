// Every family's model as a GGUF file: made of its directory by rules that the loader does not know, it
// generates what the reference says.
#include <catch2/catch.hpp>
#include <set>

#include "core/model/load.h"
#include "tests/support/converted_gguf.h"
#include "tests/support/golden_checks.h"

namespace weir::tests::gguf_families_test {

using namespace weir::core;

namespace {

std::unique_ptr<model> open_file(const std::string& path, const std::string& device,
                                 std::uint32_t context = 0) {
  auto loaded = load_model(path, make_backend(device, 2).value(), {}, {}, context);
  if (!loaded) FAIL(loaded.error().message);
  auto m = std::move(loaded->weights);
  m->allocate_pages(m->info().context / page_tokens + 1).value();
  return m;
}

void check_whole(const std::string& path, const tests::golden& g, const std::string& device) {
  const auto m = open_file(path, device);
  for (const auto& generation : g.generations)
    if (!generation.prompt_ids.empty())
      tests::check_golden_tokens(*m, generation, generation.certain(), tests::whole_prompt);
  for (const auto& logits : g.at) tests::check_golden_logits(*m, g, logits, tests::whole_prompt);
}

// Short tables up to the original context of 64 tokens, long ones beyond: the served context decides.
void check_switched(const std::string& path, const tests::golden& g, const std::string& device) {
  constexpr std::size_t original = 64;
  const auto within = open_file(path, device, original), beyond = open_file(path, device);
  for (const auto& one : g.generations) {
    const std::size_t prompt = one.prompt_ids.size();
    if (prompt < original)
      tests::check_golden_tokens(*within, one, std::min(one.certain(), original - prompt),
                                 tests::whole_prompt);
    else
      tests::check_golden_tokens(*beyond, one, one.certain(), tests::whole_prompt);
  }
  for (const auto& logits : g.at) tests::check_golden_logits(*beyond, g, logits, tests::whole_prompt);
}

// No key says that the ends of yarn's ramp are no whole pairs. The blocks of gpt-oss-mxfp4 are no floats.
bool has_no_file(const std::string& name) { return name == "llama-yarn-exact" || name == "gpt-oss-mxfp4"; }

// Returns the architectures of the files that were checked.
std::set<std::string> check_folders(const std::vector<std::filesystem::path>& dirs,
                                    const std::string& device) {
  std::set<std::string> checked;
  for (const auto& dir : dirs) {
    const std::string name = dir.filename().string(),
                      architecture = tests::gguf_conversion::architecture_of(dir);
    if (architecture.empty() || has_no_file(name)) continue;
    CAPTURE(name, architecture);
    const tests::temporary_dir to;
    const std::string path = to / "m.gguf";
    tests::write_file(path, tests::gguf_conversion(dir).write().file());
    const tests::golden g = tests::read_golden(dir);
    checked.insert(architecture);
    name == "phi3-longrope-switch" ? check_switched(path, g, device) : check_whole(path, g, device);
  }
  return checked;
}

void check_files(const std::string& device) {
  CHECK(check_folders(tests::bundled_families(), device) ==
        std::set<std::string>{"ernie4_5-moe", "glm4moe", "granitemoe", "llama", "minimax-m2", "muse-glimmer",
                              "olmo2", "qwen2moe", "qwen3moe"});
  for (const char* folder : {"models-families", "models-later"}) {
    const auto dirs = tests::data_folders(folder, "reference.json");
    if (dirs.empty()) WARN("no models of further families below " << tests::data_dir() / folder);
    const std::size_t wanted = dirs.empty() ? 0 : folder == std::string("models-families") ? 22 : 5;
    CHECK(check_folders(dirs, device).size() == wanted);
  }
}

}  // namespace

TEST_CASE("every family's GGUF file has the reference's tokens and logits on the reference backend",
          "[long]") {
  check_files("reference");
}

TEST_CASE("every family's GGUF file has the reference's tokens and logits on the cpu backend") {
  check_files("cpu");
}

}  // namespace weir::tests::gguf_families_test
