// Every model that has a reference generates what the reference says, on both backends, however its prompt is
// cut.
#include <catch2/catch.hpp>

#include "core/model/load.h"
#include "tests/support/budget.h"
#include "tests/support/golden_checks.h"

namespace weir::tests::model_golden_test {

using namespace weir::core;

namespace {

constexpr std::size_t whole = tests::whole_prompt;

std::unique_ptr<model> open(const std::filesystem::path& path, const std::string& device,
                            std::uint32_t context = 0) {
  auto loaded = load_model(path.string(), make_backend(device, 2).value(), {}, {}, context);
  if (!loaded) FAIL(loaded.error().message);
  auto m = std::move(loaded->weights);
  m->allocate_pages(m->info().context / page_tokens + 1).value();
  return m;
}

constexpr std::size_t all_chunks[] = {whole, 7, 1};

// `path`: what is loaded; `dir`: the folder with its reference.json; `chunks`: in which prompts are fed.
void check_model(const std::filesystem::path& path, const std::filesystem::path& dir,
                 const std::string& device, bool slow, std::span<const std::size_t> chunks = all_chunks) {
  CAPTURE(dir.filename());
  const auto m = open(path, device);
  const tests::golden g = tests::read_golden(dir);
  // Under a sanitizer each generation takes seconds: the last, whose prompt is the longest, stands for all.
  const auto some = std::min<std::size_t>(g.generations.size(), rounds(8));
  for (const auto& generation : std::span(g.generations).last(some))
    if (!generation.prompt_ids.empty())
      tests::check_golden_tokens(*m, generation,
                                 std::min<std::size_t>(generation.certain(), slow ? 20 : whole), whole);
  for (const std::size_t chunk : chunks) {
    tests::check_golden_tokens(*m, g.generations.back(),
                               std::min<std::size_t>(g.generations.back().certain(), 20), chunk);
    for (const auto& logits : g.at) tests::check_golden_logits(*m, g, logits, chunk);
  }
  if (g.long_greedy && g.long_least_margin >= 2e-3 && !slow)
    tests::check_golden_tokens(*m, *g.long_greedy,
                               std::min<std::size_t>(g.long_greedy->greedy_ids.size(), rounds(500)), whole);
}

void check_all(const std::string& device) {
  // The reference backend needs a minute for all of rill where the compiler does not optimise.
  for (const auto& dir : tests::reference_models())
    check_model(dir, dir, device, device == "reference" && dir.filename() == "rill");
}

void check_gguf(const std::string& device) {
  const auto folders = tests::data_folders("models-quant", "hf-config.json");
  if (folders.empty()) WARN("no GGUF models below " << tests::data_dir());
  // The reference backend takes every block apart again for each token that is fed alone.
  const bool slow = device == "reference";
  for (const auto& dir : folders) {
    const auto file = dir / "model.gguf", first = dir / "model-00001-of-00002.gguf";
    check_model(std::filesystem::exists(file) ? file : first, dir, device, slow,
                std::span(all_chunks).first(slow ? 1 : std::size(all_chunks)));
  }
}

// Models of directories with a quantization_config.
void check_quantised(const std::string& device) {
  const auto folders = tests::data_folders("models-quant", "config.json");
  if (folders.empty()) WARN("no quantised directories below " << tests::data_dir());
  const bool slow = device == "reference";
  for (const auto& dir : folders) {
    CAPTURE(dir);
    check_model(dir, dir, device, slow, std::span(all_chunks).first(slow ? 1 : std::size(all_chunks)));
    const auto promised = inspect_model(dir.string(), *make_backend(device, 1).value()).value();
    CHECK(open(dir, device)->info().weight_bytes == promised.weight_bytes);
  }
}

// transformers computes this model with short tables up to 64 tokens and with long ones beyond. A server
// decides once, by the context that it serves.
void check_switched(const std::filesystem::path& dir, const std::string& device) {
  constexpr std::size_t original = 64;
  const tests::golden g = tests::read_golden(dir);
  const auto within = open(dir, device, original), beyond = open(dir, device);
  CHECK((within->info().context == original && beyond->info().context > original));
  for (const auto& one : g.generations) {
    const std::size_t prompt = one.prompt_ids.size();
    if (prompt < original)
      tests::check_golden_tokens(*within, one, std::min(one.certain(), original - prompt), whole);
    else
      tests::check_golden_tokens(*beyond, one, one.certain(), whole);
  }
  for (const auto& logits : g.at) tests::check_golden_logits(*beyond, g, logits, whole);
}

// Families of which tiny models are there and that are not served yet.
bool comes_later(std::string_view name) {
  for (const char* part : {"glm4-moe-lite", "deepseek", "llama4", "gemma4", "qwen3_5", "qwen3-next"})
    if (name.find(part) != name.npos) return true;
  return false;
}

void check_family(const std::filesystem::path& dir, const std::string& device) {
  const std::string name = dir.filename().string();
  CAPTURE(name);
  if (name == "phi3-longrope-switch") return check_switched(dir, device);
  if (!comes_later(name)) return check_model(dir, dir, device, false, std::span(all_chunks).first(2));
  const auto refused = inspect_model(dir.string(), *make_backend(device, 1).value());
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::not_supported);
}

void check_families(const std::string& device) {
  for (const auto& dir : tests::bundled_families()) check_family(dir, device);
  for (const char* folder : {"models-families", "models-later"}) {
    const auto dirs = tests::data_folders(folder, "reference.json");
    if (dirs.empty()) WARN("no models of further families below " << tests::data_dir() / folder);
    for (const auto& dir : dirs) check_family(dir, device);
  }
}

}  // namespace

TEST_CASE("every further family's greedy tokens and logits are reproduced on the reference backend",
          "[long]") {
  check_families("reference");
}

TEST_CASE("every further family's greedy tokens and logits are reproduced on the cpu backend") {
  check_families("cpu");
}

TEST_CASE("every quantised directory's greedy tokens and logits are reproduced on the reference backend",
          "[long]") {
  check_quantised("reference");
}

TEST_CASE("every quantised directory's greedy tokens and logits are reproduced on the cpu backend") {
  check_quantised("cpu");
}

TEST_CASE("every reference model's greedy tokens and logits are reproduced on the reference backend",
          "[long]") {
  check_all("reference");
}

TEST_CASE("every reference model's greedy tokens and logits are reproduced on the cpu backend") {
  check_all("cpu");
}

TEST_CASE("every GGUF model's greedy tokens and logits are reproduced on the reference backend", "[long]") {
  check_gguf("reference");
}

TEST_CASE("every GGUF model's greedy tokens and logits are reproduced on the cpu backend") {
  check_gguf("cpu");
}

}  // namespace weir::tests::model_golden_test
