// Every vector of the data folder: ids, decoded text, and the same text through the stream.
#include "core/text/detokenizer.h"
#include "tests/core/text/text_fixtures.h"

namespace weir::tests::tokenizer_vectors_test {

using namespace weir::core;

namespace {

constexpr const char* golden_folder = "tests/core/text/tokenizer/golden";

void check_vector(const boost::json::object& v, const tokenizer& t) {
  const std::string text(v.at("text").as_string());
  const auto ids = t.encode(text, {.add_special = v.at("add_special_tokens").as_bool()});
  INFO("text: " << text.substr(0, 300));
  CHECK(ids == to_ids(v.at("ids")));
  if (const auto* decoded = v.if_contains("decoded")) {
    CHECK(t.decode(ids, {.clean_up_spaces = t.clean_up_spaces()}) == std::string_view(decoded->as_string()));
  }
}

void check_run(const boost::json::object& run, const std::shared_ptr<const tokenizer>& t) {
  if (const auto* prompt = run.if_contains("prompt")) {
    CHECK(t->encode(prompt->as_string(), {}) == to_ids(run.at("prompt_ids")));
  }
  if (!run.contains("text")) return;
  const auto ids = to_ids(run.at("greedy_ids"));
  const std::string expected(run.at("text").as_string());
  auto whole = to_ids(run.at("prompt_ids"));
  whole.insert(whole.end(), ids.begin(), ids.end());
  if (!run.contains("full_text")) {  // the long run's text has its prompt in it
    CHECK(t->decode(whole, {.skip_special = true}) == expected);
    return;
  }
  CHECK(t->decode(whole, {.skip_special = true}) == std::string_view(run.at("full_text").as_string()));
  std::string streamed;
  detokenizer d(t);
  for (const token_id id : ids) d.push(id, streamed);
  d.flush(streamed);
  CHECK(streamed == expected);
}

}  // namespace

TEST_CASE("every tokenizer gives the ids and the text of its vectors") {
  auto folders = weir::tests::data_folders("tokenizers", "vectors.json");
  if (folders.empty())
    WARN("no vectors below " << weir::tests::data_dir() << ": set TEST_DATA_DIR to run more than rill's");
  for (const auto& bundled : weir::tests::bundled_models()) folders.push_back(bundled);
  std::size_t golden = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / golden_folder))
    if (entry.is_directory()) folders.push_back(entry.path()), ++golden;
  CHECK(golden == 11);
  for (const auto& folder : folders) {
    INFO(folder);
    const auto t = load_tokenizer(folder.string());
    if (!t) FAIL_CHECK(t.error().message);
    if (!t) continue;
    const auto vectors = read_json(folder / "vectors.json");
    for (const auto& v : vectors.as_array()) check_vector(v.as_object(), **t);
  }
}

TEST_CASE("every model's tokenizer gives its reference's prompt ids and output text") {
  for (const auto& folder : weir::tests::reference_models()) {
    INFO(folder);
    const auto t = load_tokenizer(folder.string());
    if (!t) FAIL_CHECK(t.error().message);
    if (!t) continue;
    const auto reference = read_json(folder / "reference.json");
    for (const auto& run : reference.at("generations").as_array()) check_run(run.as_object(), *t);
    if (const auto* run = reference.as_object().if_contains("long_greedy")) check_run(run->as_object(), *t);
  }
}

}  // namespace weir::tests::tokenizer_vectors_test
