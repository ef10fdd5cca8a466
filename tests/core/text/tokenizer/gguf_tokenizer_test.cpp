// The tokenizer and the templates that a GGUF file's keys come to, against tokenizer.json and its vectors.
#include "core/text/tokenizer/gguf_tokenizer.h"

#include <catch2/catch.hpp>

#include "core/text/chat/chat_template.h"
#include "core/text/tokenizer/gguf_rules.h"
#include "tests/core/text/text_fixtures.h"
#include "tests/support/charsmap_bytes.h"
#include "tests/support/gguf_bytes.h"

namespace weir::tests::gguf_tokenizer_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

std::filesystem::path model_in(const std::filesystem::path& dir) {
  const auto whole = dir / "model.gguf";
  return std::filesystem::exists(whole) ? whole : dir / "model-00001-of-00002.gguf";
}

gguf_writer byte_level() {
  gguf_writer w;
  w.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
  w.texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<end>", "[PAD4]", "tool"});
  w.numbers<std::int32_t>("tokenizer.ggml.token_type", 5, {1, 1, 1, 3, 5, 4});
  w.texts("tokenizer.ggml.merges", {"a b"});
  return w;
}

gguf_writer pieces() {
  gguf_writer w;
  w.text("tokenizer.ggml.model", "llama");
  w.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "\u2581", "a", "b", "ab", "\u2581ab", "ba"});
  w.numbers<float>("tokenizer.ggml.scores", 6, {0, 0, 0, -5, -6, -7, -2, -3, -1});
  w.numbers<std::int32_t>("tokenizer.ggml.token_type", 5, {2, 3, 3, 1, 1, 1, 1, 1, 1});
  return w;
}

struct written {
  temporary_dir dir;
  std::string path = dir / "m.gguf";
  explicit written(const gguf_writer& w) { write_file(path, w.file()); }
};

std::string refusal(const gguf_writer& w) {
  const written f(w);
  const auto t = load_tokenizer(f.path);
  return t ? "accepted" : t.error().message;
}

}  // namespace

TEST_CASE("a GGUF model's tokenizer gives the ids of its tokenizer.json, over all vectors") {
  const auto file = data_dir() / "models-quant" / "metadata.json";
  if (!std::filesystem::exists(file)) {
    WARN("no GGUF models below " << data_dir());
    return;
  }
  std::size_t models = 0;
  const auto all = read_json(file);
  for (const auto& m : all.at("models").as_array()) {
    const std::string name(m.at("name").as_string());
    if (!name.starts_with("gguf-")) continue;
    INFO(name);
    ++models;
    const auto folder =
        data_dir() / "models-quant" / "tokenizers" / std::string(m.at("tokenizer").as_string());
    const auto rebuilt = load_tokenizer(model_in(data_dir() / "models-quant" / name).string());
    const auto original = load_tokenizer(folder.string());
    if (!rebuilt) FAIL_CHECK(rebuilt.error().message);
    if (!rebuilt || !original) continue;
    CHECK((*rebuilt)->bos() == (*original)->bos());
    CHECK((*rebuilt)->adds_bos() == (*original)->adds_bos());
    const auto vectors = read_json(folder / "vectors.json");
    for (const auto& v : vectors.as_array()) {
      const std::string text(v.at("text").as_string());
      INFO("text: " << text.substr(0, 300));
      const auto ids = (*rebuilt)->encode(text, {.add_special = v.at("add_special_tokens").as_bool()});
      CHECK(ids == to_ids(v.at("ids")));
      CHECK((*rebuilt)->decode(ids, {}) == (*original)->decode(ids, {}));
    }
    for (token_id id = 0; id < static_cast<token_id>((*original)->vocab_size()); ++id) {
      REQUIRE((*rebuilt)->piece(id) == (*original)->piece(id));
      REQUIRE((*rebuilt)->is_special(id) == (*original)->is_special(id));
    }
  }
  CHECK(models == 24);
}

TEST_CASE("a GGUF model's chat template makes the prompt of the model's own files") {
  const auto root = data_dir() / "models-quant";
  const auto dir = root / "gguf-llama-q4_k_m", files = root / "tokenizers" / "llama3-384";
  if (!std::filesystem::exists(dir)) {
    WARN("no GGUF models below " << data_dir());
    return;
  }
  const auto t = load_tokenizer(model_in(dir).string()).value();
  const auto ours = chat_template::load(model_in(dir).string(), *t, false).value();
  const auto theirs = chat_template::load(files.string(), *t, false).value();
  conversation c;
  c.messages =
      json(R"([{"role":"user","content":"Hello?"},{"role":"assistant","content":"Yes."}])").as_array();
  CHECK(ours->origin() == "tokenizer.chat_template");
  CHECK(ours->render(c, {}).value().text == theirs->render(c, {}).value().text);
  CHECK(ours->encode(c, *t, {}).value() == theirs->encode(c, *t, {}).value());
}

TEST_CASE("the rules of splitting are the expressions of the published tokenizers") {
  for (const auto& [rule, folder] : {std::pair{"llama-bpe", "llama3"}, {"qwen2", "qwen2.5"}}) {
    const auto path = data_dir() / "tokenizers" / folder / "tokenizer.json";
    if (!std::filesystem::exists(path)) {
      WARN("no tokenizers below " << data_dir());
      return;
    }
    const auto document = read_json(path);
    const auto& step = document.at("pre_tokenizer").at("pretokenizers").as_array()[0];
    REQUIRE(find_gguf_rule(rule));
    CHECK(find_gguf_rule(rule)->expressions[0] ==
          std::string_view(step.at("pattern").at("Regex").as_string()));
    CHECK(find_gguf_rule(rule)->ignore_merges == document.at("model").at("ignore_merges").as_bool());
    CHECK(find_gguf_rule(rule)->composes == document.at("normalizer").is_object());
  }
}

TEST_CASE("every rule of splitting compiles") {
  for (const char* name :
       {"llama-bpe", "dbrx", "qwen2", "gpt-2", "starcoder", "tekken", "gpt-4o", "seed-coder"}) {
    auto w = byte_level();
    w.keys[1] = gguf_text("tokenizer.ggml.pre") + raw(std::uint32_t{8}) + gguf_text(name);
    w.flag("tokenizer.ggml.add_bos_token", false);
    CHECK(refusal(w) == "accepted");
  }
}

TEST_CASE("a rule of splitting says whether signs take the end of their line with them") {
  for (const auto& [rule, wanted] :
       {std::pair{"qwen2", std::vector<token_id>{2, 3}}, {"seed-coder", std::vector<token_id>{0, 1, 3}}}) {
    gguf_writer w;
    w.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", rule);
    w.texts("tokenizer.ggml.tokens", {"!", "\u010a", "!\u010a", "a"});  // U+010A: how these files write "\n"
    w.numbers<std::int32_t>("tokenizer.ggml.token_type", 5, {1, 1, 1, 1});
    w.texts("tokenizer.ggml.merges", {"! \u010a"});
    w.flag("tokenizer.ggml.add_bos_token", false);
    const written f(w);
    const auto t = load_tokenizer(f.path);
    REQUIRE(t.has_value());
    CHECK((*t)->encode("!\na", {}) == wanted);
  }
}

TEST_CASE("a byte-level tokenizer has the file's tokens: control, user-defined, and fillers that are none") {
  const written f(byte_level());
  const auto t = load_tokenizer(f.path).value();
  CHECK(t->encode("ab<end>tool", {}) == std::vector<token_id>{2, 3, 5});
  CHECK(t->encode("ab<end>", {.parse_special = false}).size() == 1);  // the rest has no pieces
  CHECK(t->is_special(3));
  CHECK(!t->is_special(5));
  CHECK(t->piece(4).empty());
  CHECK(!t->adds_bos());
}

TEST_CASE("pieces with scores are joined as SentencePiece joins them") {
  const written f(pieces());
  const auto t = load_tokenizer(f.path).value();
  CHECK(t->adds_bos());
  // "ba" has the highest score, so that "ab" finds its b taken.
  CHECK(t->encode("aba", {}) == std::vector<token_id>{1, 3, 4, 8});
  CHECK(t->encode("ab", {.add_special = false}) == std::vector<token_id>{7});
  CHECK(t->decode(t->encode("ab ab", {.add_special = false}), {}) == "ab ab");
}

TEST_CASE("equal scores are joined from the left, and characters without a piece all the same") {
  gguf_writer w;
  w.text("tokenizer.ggml.model", "llama");
  w.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "b", "ab", "ba", "bz", "[PAD]", "[PAD]"});
  w.numbers<float>("tokenizer.ggml.scores", 6, {0, 0, 0, -5, -6, -1, -1, -2, 0, 0});
  w.numbers<std::int32_t>("tokenizer.ggml.token_type", 5, {2, 3, 3, 1, 1, 1, 1, 1, 5, 5});
  w.flag("tokenizer.ggml.add_space_prefix", false);
  const written f(w);
  const auto t = load_tokenizer(f.path).value();
  CHECK(t->encode("aba", {.add_special = false}) == std::vector<token_id>{5, 3});
  CHECK(t->encode("bz", {.add_special = false}) == std::vector<token_id>{7});
  CHECK(t->piece(8).empty());
}

namespace {

gguf_writer unigram_keys() {
  gguf_writer w;
  w.text("tokenizer.ggml.model", "t5");
  w.texts("tokenizer.ggml.tokens", {"<pad>", "</s>", "<unk>", "\u2581", "a", "b", "ab", "\u2581ab", "ud"});
  w.numbers<float>("tokenizer.ggml.scores", 6, {0, 0, 0, -2, -3, -3, -5, -9, 0});
  w.numbers<std::int32_t>("tokenizer.ggml.token_type", 5, {3, 3, 2, 1, 1, 1, 1, 1, 4});
  w.flag("tokenizer.ggml.add_space_prefix", true).flag("tokenizer.ggml.remove_extra_whitespaces", true);
  return w;
}

}  // namespace

TEST_CASE("a Unigram model's keys give the best cut, replacements and an end") {
  auto w = unigram_keys();
  const std::string table = charsmap_writer{{"A", "a"}}.table();
  w.numbers<std::int8_t>("tokenizer.ggml.precompiled_charsmap", 1, {table.begin(), table.end()});
  const written f(w);
  const auto t = load_tokenizer(f.path).value();
  CHECK(t->encode("  Ab  ud", {}) == std::vector<token_id>{3, 6, 8, 1});
  CHECK_FALSE(t->adds_bos());
  CHECK(t->decode(t->encode("ab", {.add_special = false}), {}) == "ab");

  w = unigram_keys();
  w.numbers<std::int8_t>("tokenizer.ggml.precompiled_charsmap", 1, {1, 2, 3});
  CHECK_THAT(refusal(w), Contains("tokenizer.ggml.precompiled_charsmap: its first four bytes"));
  w = unigram_keys();
  w.numbers<std::int32_t>("tokenizer.ggml.precompiled_charsmap", 5, {1, 256});
  CHECK_THAT(refusal(w), Contains("'tokenizer.ggml.precompiled_charsmap': [1] is not a byte"));
  w = unigram_keys();
  w.number("tokenizer.ggml.unknown_token_id", 99);
  CHECK_THAT(refusal(w), Contains("'tokenizer.ggml.unknown_token_id': 99 is outside"));
}

TEST_CASE("keys that make no tokenizer are refused by name") {
  auto w = byte_level();
  w.keys[0] = gguf_text("tokenizer.ggml.model") + raw(std::uint32_t{8}) + gguf_text("bert");
  CHECK_THAT(refusal(w), Contains("'tokenizer.ggml.model' bert is not supported"));
  w = byte_level();
  w.keys[1] = gguf_text("tokenizer.ggml.pre") + raw(std::uint32_t{8}) + gguf_text("new-rule");
  CHECK_THAT(refusal(w), Contains("'tokenizer.ggml.pre' new-rule is not supported"));
  w = byte_level();
  w.keys.erase(w.keys.begin() + 1);
  CHECK_THAT(refusal(w), Contains("'tokenizer.ggml.pre' is missing"));
  w = byte_level();
  w.keys.pop_back();
  CHECK_THAT(refusal(w), Contains("'tokenizer.ggml.merges' is missing"));
  w.texts("tokenizer.ggml.merges", {"ab"});
  CHECK_THAT(refusal(w), Contains("'tokenizer.ggml.merges': [0] is not two pieces"));
  w.keys.pop_back();
  w.texts("tokenizer.ggml.merges", {"a x"});
  CHECK_THAT(refusal(w), Contains("not in the vocabulary"));
  w = byte_level();
  w.number("tokenizer.ggml.bos_token_id", 6);
  CHECK_THAT(refusal(w), Contains("'tokenizer.ggml.bos_token_id': 6 is outside"));
  w = byte_level();
  w.flag("tokenizer.ggml.add_bos_token", true);
  CHECK_THAT(refusal(w), Contains("'tokenizer.ggml.bos_token_id' is missing"));
  w = pieces();
  w.keys[2] = gguf_text("tokenizer.ggml.scores") + raw(std::uint32_t{9}) + raw(std::uint32_t{6}) +
              raw(std::uint64_t{1}) + raw(1.0f);
  CHECK_THAT(refusal(w), Contains("'tokenizer.ggml.scores': 1 items for 9 tokens"));
  w = pieces();
  w.keys.erase(w.keys.begin() + 2);
  CHECK_THAT(refusal(w), Contains("'tokenizer.ggml.scores' is missing"));
  w = pieces();
  w.keys[1] = gguf_text("tokenizer.ggml.tokens") + raw(std::uint32_t{9}) + raw(std::uint32_t{8}) +
              raw(std::uint64_t{9});
  for (const char* s : {"<unk>", "<s>", "</s>", "x", "x", "b", "ab", "c", "\xff"}) w.keys[1] += gguf_text(s);
  CHECK_THAT(refusal(w), Contains("[8] is not UTF-8"));
  CHECK_THAT(refusal(gguf_writer{}), Contains("'tokenizer.ggml.model' is missing"));
}

}  // namespace weir::tests::gguf_tokenizer_test
