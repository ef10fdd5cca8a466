// What is said of a model's files: whole ones, broken ones, and such as nobody can serve.
#include "core/inspect/model_report.h"

#include <catch2/catch.hpp>

#include <algorithm>

#include "core/inspect/layer_kinds.h"
#include "core/inspect/report_text.h"
#include "core/model/load.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/source_dir.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::model_report_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

std::string lines_of(const model_report& m) {
  std::string out;
  for (const auto& line : report_lines(m)) out += line + "\n";
  return out;
}

// The report of a toy directory that was changed.
template <class F>
model_report report_after(const F& change, std::uint32_t context = 0) {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), {});
  change(dir);
  return describe_model(dir.path().string(), context);
}

// The report of a bundled model of four layers, with a template that has tools.
model_report olmo3() {
  const tests::temporary_dir dir;
  const auto from = tests::source_dir() / "tests";
  std::filesystem::copy(from / "data/families/olmo3-1", dir.path());
  std::filesystem::copy_file(from / "e2e/qwen_like.jinja", dir.path() / "chat_template.jinja");
  auto m = describe_model(dir.path().string());
  m.path = "olmo3-1";
  return m;
}

device_report on_cpu() {
  device_report d;
  d.device = "cpu";
  d.lines = {.weights = 320'000, .workspaces = 12'000, .runtime = 0, .staging = 0, .pages = 1'048'576};
  d.page_bytes = 32768;
  d.free = 8'000'000'000;
  d.kv_tokens = 2048;
  d.context = 1024;
  return d;
}

}  // namespace

TEST_CASE("inspect: the text of a small model") {
  auto m = olmo3();
  device_report card;
  card.device = "cuda:0";
  card.wrong = make_error(errc::invalid_param, "--kv-type q8: cuda has no such type");
  add_devices(m, {on_cpu(), card});
  CHECK(lines_of(m) == tests::read_file(tests::source_dir() / "tests/data/inspect/olmo3-1.txt"));
}

TEST_CASE("inspect: the JSON of a small model") {
  auto m = olmo3();
  add_devices(m, {on_cpu()});
  CHECK(report_json(m) + "\n" == tests::read_file(tests::source_dir() / "tests/data/inspect/olmo3-1.json"));
}

TEST_CASE("inspect: layers that are alike are folded") {
  const auto kinds = [](const char* config) {
    const auto c = parse_config(config, "config.json").value();
    return layers_text(layer_kinds(c.shape.layers));
  };
  CHECK(kinds(R"({"architectures":["LlamaForCausalLM"],"hidden_size":64,"intermediate_size":64,
                  "num_hidden_layers":3,"num_attention_heads":4,"max_position_embeddings":64,
                  "vocab_size":100})") == "3 layers: full");
  CHECK(kinds(R"({"architectures":["Cohere2ForCausalLM"],"hidden_size":64,"intermediate_size":64,
                  "num_hidden_layers":8,"num_attention_heads":4,"max_position_embeddings":64,
                  "vocab_size":100,"sliding_window":16})") ==
        "8 layers: 6 with a window of 16; 2 full, without rotation");
  CHECK(kinds(R"({"architectures":["Gemma3ForCausalLM"],"num_hidden_layers":7,"sliding_window":16})") ==
        "7 layers: 6 with a window of 16, rope 2; 1 full, rope 1");
}

TEST_CASE("inspect: a context that is served decides the tables and is said") {
  const auto longrope = [](const tests::temporary_dir& dir) {
    const boost::json::array factors{2, 2, 2, 2};
    tests::toy_options o;
    o.architecture = "Phi3ForCausalLM";
    o.config["original_max_position_embeddings"] = 128;
    o.config["rope_scaling"] = {{"type", "longrope"}, {"short_factor", factors}, {"long_factor", factors}};
    tests::write_toy_directory(dir.path(), o);
  };
  const auto whole = report_after(longrope), part = report_after(longrope, 128),
             beyond = report_after(longrope, 4096);
  CHECK_THAT(lines_of(whole), Contains("long table at this context") && Contains("512 tokens"));
  CHECK_THAT(lines_of(part), Contains("short table at this context") && Contains("512 tokens, of which 128"));
  REQUIRE(part.notes.size() == 1);
  CHECK_THAT(part.notes[0], Contains("longrope: short tables, since the served context of 128 tokens"));
  REQUIRE(beyond.notes.size() == 2);
  CHECK(beyond.notes[0] == "a context of 4096 tokens was asked for, and the model has 512, which count");
  CHECK(whole.served());
}

TEST_CASE("inspect: what is wrong with files is said, and the rest is described") {
  const auto refused = [](const auto& change) { return report_after(change).refused; };
  SECTION("a tensor is missing") {
    const auto m = report_after([](const tests::temporary_dir& dir) {
      auto tensors = tests::toy_tensors({});
      tensors.pop_back();
      tests::write_file(dir / "model.safetensors", tests::safetensors_bytes(tensors));
    });
    REQUIRE(m.refused.size() == 1);
    CHECK_THAT(m.refused[0], Contains("lm_head.weight"));
    CHECK(m.config);
    CHECK(m.tensors.size() == 1);
    CHECK(m.tokens);
  }
  SECTION("a header is cut off") {
    const auto m = report_after([](const tests::temporary_dir& dir) {
      const auto whole = tests::safetensors_bytes(tests::toy_tensors({}));
      tests::write_file(dir / "model.safetensors", whole.substr(0, 200));
    });
    REQUIRE(m.refused.size() == 1);
    CHECK_THAT(m.refused[0], Contains("model.safetensors: a header of"));
    CHECK(m.row == "LlamaForCausalLM");
    CHECK(m.tensors.empty());
    CHECK(m.parameters == 0);
  }
  SECTION("config.json is no JSON, and the weights are gone") {
    const auto all = refused([](const tests::temporary_dir& dir) {
      tests::write_file(dir / "config.json", "{");
      std::filesystem::remove(dir / "model.safetensors");
    });
    REQUIRE(all.size() == 2);
    CHECK_THAT(all[0], Contains("config.json"));
    CHECK_THAT(all[1], Contains("neither model.safetensors"));
  }
  SECTION("a tokenizer of another kind") {
    const auto m = report_after([](const tests::temporary_dir& dir) {
      tests::write_file(dir / "tokenizer.json", R"({"model":{"type":"WordPiece","vocab":{}}})");
    });
    REQUIRE(m.refused.size() == 1);
    CHECK_THAT(m.refused[0], Contains("WordPiece"));
    CHECK(!m.tokens);
    CHECK(m.chat);
  }
  SECTION("a template that does not compile refuses messages, and the model is served") {
    const auto m = report_after(
        [](const tests::temporary_dir& dir) { tests::write_file(dir / "chat_template.jinja", "{% for %}"); });
    CHECK(m.served());
    REQUIRE(m.chat);
    CHECK_THAT(m.chat->refused, Contains("does not compile"));
    CHECK_THAT(lines_of(m), Contains("template      messages cannot be taken"));
  }
  SECTION("nothing is there") {
    const auto m = describe_model("/nowhere/at/all");
    REQUIRE(m.refused.size() == 1);
    CHECK_THAT(lines_of(m), Contains("served        no") && Contains("/nowhere/at/all"));
  }
}

TEST_CASE("inspect: codes of quantised directories are no parameters of a model that is not served") {
  const auto m = report_after([](const tests::temporary_dir& dir) {
    tests::toy_options o;
    o.config = {{"quantization_config", {{"quant_method", "hqq"}}}};
    tests::write_toy_directory(dir.path(), o);
  });
  CHECK_THAT(m.refused.front(), Contains("hqq"));
  CHECK(m.parameters == 0);
  CHECK(m.keys.at("quantization_config.quant_method") == "hqq");
}

TEST_CASE("inspect: the bits of codes are named where the config has them") {
  for (const auto& dir : tests::data_folders("models-quant", "config.json")) {
    CAPTURE(dir);
    const auto m = describe_model(dir.string());
    const bool exl2 = m.config->quantised.form == quant_form::exl2;  // each tensor has its own
    const std::string line = lines_of(m), quantised = line.substr(line.find("\nquantised"), 60);
    CHECK((quantised.find(" bits") == quantised.npos) == exl2);
  }
}

TEST_CASE("inspect: a GGUF file of an architecture that is not served") {
  tests::gguf_writer w;
  w.text("general.architecture", "qwen3\x1b[31mmoe").number("qwen3\x1b[31mmoe.block_count", 12);
  w.number("qwen3\x1b[31mmoe.expert_count", 64).number("qwen3\x1b[31mmoe.expert_used_count", 8);
  w.tensor({"blk.0.attn_q.weight", {8, 4}, 0, std::string(128, '\0')});
  const tests::temporary_dir dir;
  tests::write_file(dir / "m.gguf", w.file());
  const auto m = describe_model(dir / "m.gguf");
  CHECK(m.container == "GGUF");
  CHECK(!m.served());
  CHECK(m.sizes.layers == 12);
  CHECK(m.sizes.experts == 64);
  CHECK(m.sizes.used == 8);
  CHECK(m.parameters == 32);
  const auto text = lines_of(m);
  CHECK(text.find('\x1b') == text.npos);
  CHECK_THAT(text, Contains("64 experts of which a token has 8") && Contains("1 F32"));
}

TEST_CASE("inspect: an error of all devices is one of the model") {
  auto m = report_after([](const tests::temporary_dir&) {});
  device_report a, b;
  a.wrong = b.wrong = make_error(errc::bad_file, "a tensor is odd");
  auto one = m;
  add_devices(one, {a, on_cpu()});
  CHECK(one.served());
  CHECK(one.devices.size() == 2);
  add_devices(m, {a, b});
  CHECK(m.refused == std::vector<std::string>{"a tensor is odd"});
  CHECK(m.devices.empty());
  CHECK(!m.served());
}

}  // namespace weir::tests::model_report_test
