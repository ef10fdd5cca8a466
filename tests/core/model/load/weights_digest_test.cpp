// The digest of a model's weights: equal for equal files wherever they lie, another one for another training.
#include "core/model/load/weights_digest.h"

#include <catch2/catch.hpp>
#include <set>

#include "tests/support/converted_gguf.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::weights_digest_test {
namespace {

std::uint64_t digest_of(const std::filesystem::path& p, std::uint32_t context = 0) {
  const auto d = core::weights_digest(p.string(), context);
  if (!d) FAIL(d.error().message);
  CHECK(*d != 0);
  return *d;
}

}  // namespace

TEST_CASE("weights_digest: equal for equal files, another one for other weights or another configuration") {
  const temporary_dir a, b, c, d, e;
  toy_options o;
  write_toy_directory(a.path(), o);
  write_toy_directory(b.path(), o);
  o.seed = 2;
  write_toy_directory(c.path(), o);
  o.seed = 1;
  o.config["rope_theta"] = 20000.0;
  write_toy_directory(d.path(), o);
  const auto first = digest_of(a.path());
  CHECK(digest_of(b.path()) == first);
  CHECK(digest_of(a.path(), 100) == first);  // its rotary tables do not depend on the context
  CHECK(digest_of(c.path()) != first);
  CHECK(digest_of(d.path()) != first);
  write_file(b.path() / "tokenizer_config.json", R"({"bos_token":"</s>"})");  // no matter of arithmetic
  CHECK(digest_of(b.path()) == first);
}

TEST_CASE("weights_digest: each tensor counts") {
  const temporary_dir a;
  const toy_options o;
  write_toy_directory(a.path(), o);
  std::set<std::uint64_t> all{digest_of(a.path())};
  const auto tensors = toy_tensors(o);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto changed = tensors;
    std::mt19937 r(7);
    changed[i] = random_tensor(r, changed[i].name, changed[i].dtype, changed[i].shape);
    write_file(a.path() / "model.safetensors", safetensors_bytes(changed));
    all.insert(digest_of(a.path()));
  }
  CHECK(all.size() == 1 + tensors.size());
}

TEST_CASE("weights_digest: of a GGUF file its keys and its tensors count, and its place does not") {
  const temporary_dir dir, at;
  write_toy_directory(dir.path());
  const auto whole = gguf_conversion(dir.path()).write().file();
  write_file(at.path() / "a.gguf", whole);
  write_file(at.path() / "b.gguf", whole);
  const auto first = digest_of(at.path() / "a.gguf");
  CHECK(digest_of(at.path() / "b.gguf") == first);
  auto other = whole;
  other[other.size() - 64] ^= 1;  // in the last tensor, whose first and last bytes are sampled
  write_file(at.path() / "b.gguf", other);
  CHECK(digest_of(at.path() / "b.gguf") != first);
}

TEST_CASE("weights_digest: where there is no model, the error names the path") {
  const temporary_dir none;
  const auto d = core::weights_digest(none.path().string(), 0);
  REQUIRE(!d.has_value());
  CHECK(d.error().message.find(none.path().string()) != std::string::npos);
}

}  // namespace weir::tests::weights_digest_test
