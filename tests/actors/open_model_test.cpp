#include "actors/open_model.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "actors/gpu_owner.h"
#include "core/model/load.h"
#include "kernels/ops.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::open_model_test {

using namespace weir::actors;
using Catch::Matchers::Contains;

namespace {

std::uint64_t free_now = 0;

std::shared_ptr<const kernels::backend> backend_with_free(std::uint64_t bytes) {
  auto b = std::make_shared<kernels::backend>(*kernels::reference_backend());
  free_now = bytes;
  b->free_bytes = [](void*) { return free_now; };
  return b;
}

}  // namespace

TEST_CASE("prompt rows beside streams: --prefill-ms, an objective, or what suits the device") {
  using namespace std::chrono_literals;
  const auto slices = [](const owner_options& o, bool own_device) {
    core::engine_config c;
    set_slices(c, o, own_device);
    return c;
  };
  CHECK(slices({}, false).step_target == 30ms);
  CHECK(slices({}, false).prompt_share == 0);
  CHECK(slices({}, true).step_target == 0ms);
  CHECK(slices({}, true).prompt_share == Approx(0.4));
  CHECK_FALSE(slices({}, true).slo.set());
  owner_options o;
  o.slo = {1000ms, 50ms};
  for (const bool own_device : {false, true}) {
    const auto c = slices(o, own_device);
    CHECK(c.slo.tpot == 50ms);
    CHECK(c.step_target == 0ms);
    CHECK(c.prompt_share == 0);
  }
  o.prefill_time = 20ms;
  CHECK(slices(o, true).step_target == 20ms);
  CHECK(slices(o, true).slo.set());
}

TEST_CASE("the option --kv-type decides what pages store, and what they take") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), {});
  const auto open = [&](const char* type, const char* device = "reference") {
    owner_options o;
    o.kv = core::parse_kv_type(type).value();
    o.device = device;
    o.kv_tokens = 10 * core::page_tokens;
    o.kv_host_mb = o.device == "sim" ? 0 : 1;
    const std::string source = o.device == "sim" ? "sim" : dir.path().string();
    return open_model({"toy", source}, o, o.device == "sim" ? nullptr : kernels::reference_backend(), {});
  };
  const auto use = [&](const char* type) {
    const auto m = open(type);
    REQUIRE(m.has_value());
    const auto& [place, info] = std::tie(*(*m)->place, (*m)->weights->info());
    CHECK(place.memory.pages == 10 * info.page_bytes);
    CHECK(place.memory.host_pages == (1u << 20) / info.page_bytes * info.page_bytes);
    CHECK(place.memory.kv_type == info.kv_type);
    return place.memory;
  };
  CHECK(use("auto").kv_type == "f32");
  CHECK(use("q8").kv_type == "q8");
  CHECK(2 * use("bf16").pages == use("f32").pages);
  CHECK_THAT(open("q8", "sim").error().message, Contains("--kv-type: sim"));
  CHECK(open("auto", "sim").has_value());
}

TEST_CASE("a directory that does not fit is refused before its weights are read") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), {});
  const std::string path = dir.path().string();
  const auto needs = core::inspect_model(path, *kernels::reference_backend()).value();
  const std::uint64_t least = needs.weight_bytes + needs.page_bytes;

  std::uint64_t read = 0, all = 0;
  const auto progress = [&](const std::string&, std::uint64_t done, std::uint64_t total) {
    read = done;
    all = total;
  };
  const auto refused = open_model({"toy", path}, {}, backend_with_free(least - 1), progress);
  REQUIRE(refused.has_error());
  CHECK(refused.error().code == core::errc::does_not_fit);
  CHECK_THAT(refused.error().message, Contains(path) && Contains("the weights take"));
  CHECK(read == 0);

  const auto opened = open_model({"toy", path}, {}, backend_with_free(16 * least), progress);
  REQUIRE(opened.has_value());
  CHECK(read > 0);
  CHECK(read == all);
}

TEST_CASE("a template of the options takes the place of a model's own, with the model's special tokens") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), {});
  std::ofstream(dir.path() / "tokenizer_config.json") << R"({"chat_template":"own","bos_token":"<s>"})";
  owner_options o;
  o.device = "reference";
  core::conversation hello;
  hello.messages = {boost::json::object{{"role", "user"}, {"content", "hi"}}};
  const auto prompt_of = [&](const char* source) {
    const auto m = open_model({"toy", source}, o, kernels::reference_backend(), {});
    REQUIRE(m.has_value());
    return (*m)->served->chat->render(hello, {}).value().text;
  };
  const std::string files = dir.path().string();
  CHECK(prompt_of(files.c_str()) == "own");
  o.chat_template = std::make_shared<const template_text>(
      template_text{"f.jinja", "{{ bos_token }}{{ messages[0].content }}"});
  CHECK(prompt_of(files.c_str()) == "<s>hi");
  o.chat_template.reset();
  o.chatml = true;
  CHECK(prompt_of(files.c_str()).starts_with("<|im_start|>"));
}

TEST_CASE("a file that declares a context of millions of tokens takes the pages of a usual one") {
  const tests::temporary_dir dir;
  tests::toy_options shape;
  shape.context = 16'777'216;
  tests::write_toy_directory(dir.path(), shape);
  owner_options o;
  o.device = "reference";
  o.kv = core::parse_kv_type("q8").value();
  o.max_batch = 2;
  const auto open = [&] {
    return open_model({"toy", dir.path().string()}, o, backend_with_free(std::uint64_t{1} << 40), {});
  };
  const auto m = open();
  REQUIRE(m.has_value());
  CHECK((*m)->served->context == 262'144);
  CHECK((*m)->place->memory.pages == 262'144 / core::page_tokens * (*m)->weights->info().page_bytes);
  o.max_seq_len = 300'000;  // asked for
  CHECK((*open())->served->context == 300'000);
}

TEST_CASE("a model is served with the context that was asked for it, which decides its rotary tables") {
  const tests::temporary_dir dir;
  tests::toy_options shape;  // of 512 tokens
  const boost::json::array factors{2, 2, 2, 2};
  shape.architecture = "Phi3ForCausalLM";
  shape.config["original_max_position_embeddings"] = 128;
  shape.config["rope_scaling"] = {{"type", "longrope"}, {"short_factor", factors}, {"long_factor", factors}};
  tests::write_toy_directory(dir.path(), shape);
  const auto open = [&](std::optional<std::uint32_t> own, std::uint32_t usual, std::uint32_t longest) {
    owner_options o;
    o.device = "reference";
    o.context = usual;
    o.max_seq_len = longest;
    const model_spec spec{.name = "toy", .source = dir.path().string(), .context = own};
    return open_model(spec, o, kernels::reference_backend(), {}).value()->served;
  };
  const auto tables_of = [](const served_model& m) { return m.notes.at(0).substr(0, 15); };
  for (const auto& [own, usual, longest, context] : {std::tuple{std::optional<std::uint32_t>(), 0u, 0u, 512u},
                                                     {std::nullopt, 128u, 0u, 128u},
                                                     {64u, 128u, 0u, 64u},
                                                     {0u, 128u, 0u, 512u},
                                                     {std::nullopt, 0u, 100u, 100u},
                                                     {200u, 0u, 100u, 100u},
                                                     {64u, 0u, 100u, 64u}}) {
    const auto m = open(own, usual, longest);
    CHECK(m->info.context == context);
    CHECK(m->context == context);
    CHECK(tables_of(*m) == (context > 128 ? "longrope: long " : "longrope: short"));
  }
  const auto beyond = open(4096, 0, 0);
  CHECK(beyond->context == 512);
  CHECK_THAT(beyond->notes.at(0), Contains("a context of 4096 tokens was asked for"));
}

}  // namespace weir::tests::open_model_test
