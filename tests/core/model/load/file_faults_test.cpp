// Each call of the system by which a model's files are read fails once, reads one byte, or finds a file that
// has become shorter: the load ends with an error that names the file, or with the same model.
#include "tests/support/file_faults.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <map>

#include "core/model/load.h"
#include "core/model/load/gguf_model.h"
#include "core/model/load/safetensors.h"
#include "core/text/chat/chat_template.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::file_faults_test {

using namespace weir::core;
using kind = file_faults::kind;

namespace {

namespace fs = std::filesystem;

// Bytes of every tensor, read as a load reads them.
result<std::string> weights_of(const checkpoint& all) {
  std::string out;
  for (const auto& [name, tensor] : all.tensors()) {
    std::string bytes(tensor.bytes.size(), 0);
    if (auto ok = all.read(tensor, 0, std::as_writable_bytes(std::span(bytes))); !ok) return ok.error();
    out += name + bytes;
  }
  return out;
}

result<std::string> weights_of(const std::string& path) {
  if (path.ends_with(".gguf")) {
    const auto opened = open_gguf(path);
    if (!opened) return opened.error();
    return weights_of(opened->weights);
  }
  const auto opened = open_safetensors(path);
  if (!opened) return opened.error();
  return weights_of(*opened);
}

// All that a model's files say, as far as a test can compare it.
result<std::string> read_all(const std::string& path) {
  auto weights = weights_of(path);
  if (!weights) return weights.error();
  const auto model = load_model(path, kernels::reference_backend());
  if (!model) return model.error();
  const auto words = load_tokenizer(path);
  if (!words) return words.error();
  const auto chat = chat_template::load(path, **words, false);
  if (!chat) return chat.error();
  conversation c;
  c.messages = {{{"role", "user"}, {"content", "Hello"}}};
  const auto prompt = (*chat)->render(c, {});
  return fmt::format("{}{}{}{}", *weights, model->weights->info().vocab_size, (*words)->vocab_size(),
                     prompt ? prompt->text : prompt.error().message);
}

// A model whose files are written anew for each load.
struct files {
  std::string name;  // of what is loaded, in `dir`
  std::map<std::string, std::string> contents;

  void write(const fs::path& dir) const {
    for (const auto& [file, bytes] : contents) write_file(dir / file, bytes);
  }
};

files directory_model() {
  const temporary_dir dir;
  write_toy_directory(dir.path());
  // Half of this template is a template, too.
  write_file(dir.path() / "chat_template.jinja",
             std::string("{{ messages[0].content }}") + std::string(200, 'x') + std::string(200, 'y'));
  files out;
  for (const auto& f : fs::directory_iterator(dir.path()))
    out.contents[f.path().filename()] = read_file(f.path());
  return out;
}

files gguf_model(const fs::path& file) { return {"model.gguf", {{"model.gguf", read_file(file)}}}; }

struct fault {
  const char* says;
  kind what;
  int code;
};
constexpr fault faults[] = {{"EIO", kind::error, EIO},
                            {"ENOMEM", kind::error, ENOMEM},
                            {"one byte", kind::one_byte, 0},
                            {"shrinks", kind::shrinks, 0}};

void check_faults(const files& model) {
  const temporary_dir dir;
  const std::string path = model.name.empty() ? dir.path().string() : (dir.path() / model.name).string();
  std::uint64_t calls = 0;
  bool met = false;
  const auto load = [&](const fault& f, std::uint64_t at) {
    model.write(dir.path());
    const file_faults now(f.what, at, f.code);
    auto got = read_all(path);
    if (f.what == kind::none) calls = now.calls();
    met = now.met();
    return got;
  };
  REQUIRE(load({"none", kind::none, 0}, 0).has_value());  // what a process does once is done
  const auto whole = load({"none", kind::none, 0}, 0);
  REQUIRE(whole.has_value());
  REQUIRE(calls > 20);
  // Every call fails once, in one of the ways, which the seed shifts; `--long` has all ways.
  const std::size_t ways = std::min<std::size_t>(rounds(1), std::size(faults));
  const std::uint64_t first = drawn_seed(0);
  std::size_t refused = 0;
  for (std::uint64_t at = 0; at < calls; ++at)
    for (std::size_t way = 0; way < ways; ++way) {
      const fault& f = faults[(first + at + way) % std::size(faults)];
      CAPTURE(f.says, at);
      const auto got = load(f, at);
      REQUIRE(met);
      refused += got.has_error();
      if (f.what == kind::error || f.what == kind::shrinks) {
        if (got) {
          REQUIRE(f.what == kind::shrinks);  // a file of which nothing more is read
          REQUIRE(*got == *whole);
        } else {
          REQUIRE_THAT(got.error().message, Catch::Contains(dir.path().string()));
        }
      } else {
        REQUIRE(got.has_value());
        REQUIRE(*got == *whole);
      }
    }
  CHECK(refused > calls * ways * 2 / 5);  // errors always, and nearly all files that shrink
}

}  // namespace

TEST_CASE("files: a directory whose reads fail at any call is refused by the file's name, or is whole") {
  check_faults(directory_model());
}

TEST_CASE("files: a GGUF file whose reads fail at any call is refused by its name, or is whole") {
  const auto file = data_dir() / "models-quant" / "gguf-qwen2-q6_k" / "model.gguf";
  if (!fs::exists(file)) {
    WARN(file << " is not there");
    return;
  }
  check_faults(gguf_model(file));
}

}  // namespace weir::tests::file_faults_test
