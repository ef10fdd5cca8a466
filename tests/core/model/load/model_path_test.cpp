#include "core/model/load/model_path.h"

#include <catch2/catch.hpp>

#include "core/text/tokenizer/tokenizer.h"
#include "tests/support/data.h"

namespace weir::tests::model_path_test {

using namespace weir::core;
using Catch::Contains;

namespace {

std::string refusal(const std::string& path) {
  const auto r = check_model_path(path);
  return r ? "" : r.error().message;
}

}  // namespace

TEST_CASE("a path to one file of a model's directory says to give the directory") {
  weir::tests::temporary_dir dir;
  for (const char* name : {"model.safetensors", "config.json", "pytorch_model.bin", "chat_template.jinja"}) {
    const std::string path = dir / name;
    weir::tests::write_file(dir / name, "x");
    CHECK(refusal(path) == path + " is one file of a model: give its directory, " + dir.path().string());
    CHECK_THAT(load_tokenizer(path).error().message, Contains("give its directory"));
  }
  weir::tests::write_file(dir / "model.gguf", "x");
  weir::tests::write_file(dir / "blob", "x");
  CHECK(refusal(dir / "model.gguf").empty());
  CHECK(refusal(dir / "blob").empty());  // a GGUF file may have any name
  CHECK(refusal(dir.path().string()).empty());
}

TEST_CASE("a repository's name says how to get it, another path that nothing is there") {
  CHECK_THAT(refusal("no-such-owner/Model-8B.Instruct"),
             Contains("hf download no-such-owner/Model-8B.Instruct --local-dir Model-8B.Instruct"));
  for (const char* path : {"/no/such", "./no-such", "no-such", "no-such/", "a/b/c", "~/models/x", ""}) {
    CAPTURE(path);
    CHECK_THAT(refusal(path), Contains("there is no such directory or file"));
    CHECK_THAT(refusal(path), !Contains("hf download"));
  }
}

}  // namespace weir::tests::model_path_test
