// Which entries of --models-dir are models, and which names lead out of it.
#include "actors/models_dir.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace weir::tests::models_dir_test {
namespace {

namespace fs = std::filesystem;
using namespace weir::actors;

// A directory that goes with the object.
struct directory {
  directory() : root(fs::temp_directory_path() / fs::path("weir-models-dir-XXXXXX")) {
    std::string made = root.string();
    REQUIRE(::mkdtemp(made.data()));
    root = made;
    dir = root / "models";
    fs::create_directory(dir);
  }
  ~directory() { fs::remove_all(root); }
  void file(const fs::path& path) const {
    fs::create_directories((dir / path).parent_path());
    std::ofstream(dir / path) << "x";
  }
  std::vector<std::string> names() const {
    const auto found = models_in(dir.string());
    REQUIRE(found.has_value());
    std::vector<std::string> out;
    for (const auto& m : *found) out.push_back(m.name);
    return out;
  }
  fs::path root, dir;
};

using name_list = std::vector<std::string>;

}  // namespace

TEST_CASE("models dir: directories and GGUF files are models, one level deep") {
  const directory d;
  d.file("plain/config.json");
  d.file("single.gguf");
  d.file("notes.txt");
  d.file("owner/first/config.json");
  d.file("owner/second/model.safetensors");
  d.file("quants/small-Q4.gguf");
  d.file("quants/large-Q8.gguf");
  d.file(".hidden/config.json");
  d.file("broken/readme.md");
  d.file("project/data/words.txt");
  CHECK(d.names() == name_list{"broken", "owner/first", "owner/second", "plain", "project", "quants/large-Q8",
                               "quants/small-Q4", "single"});
  CHECK(models_in(d.dir.string())->at(3).source == fs::canonical(d.dir / "plain").string());
}

TEST_CASE("models dir: parts of a model are one model, and a name stands for one entry") {
  const directory d;
  for (const char* part : {"big-00001-of-00003.gguf", "big-00002-of-00003.gguf", "big-00003-of-00003.gguf"})
    d.file(part);
  d.file("twin.gguf");
  d.file("twin/config.json");
  CHECK(d.names() == name_list{"big-00001-of-00003", "twin", "twin.gguf"});
  CHECK(fs::is_directory(models_in(d.dir.string())->at(1).source));
}

TEST_CASE("models dir: links stay inside") {
  const directory d;
  d.file("real/config.json");
  fs::create_directory(d.root / "outside");
  std::ofstream(d.root / "outside" / "config.json") << "{}";
  std::ofstream(d.root / "outside.gguf") << "x";
  fs::create_directory_symlink(d.dir / "real", d.dir / "alias");
  fs::create_directory_symlink(d.root / "outside", d.dir / "leak");
  fs::create_symlink(d.root / "outside.gguf", d.dir / "leak.gguf");
  fs::create_directory_symlink(d.dir, d.dir / "loop");
  fs::create_symlink("nowhere", d.dir / "dangling.gguf");
  CHECK(d.names() == name_list{"alias", "real"});
  for (const char* name : {"leak", "leak.gguf", "loop", "dangling", "loop/leak"}) {
    CAPTURE(name);
    CHECK_FALSE(model_in_dir(d.dir.string(), name).has_value());
  }
  CHECK(model_in_dir(d.dir.string(), "alias").has_value());
}

TEST_CASE("models dir: no name leads out") {
  const directory d;
  d.file("a/config.json");
  d.file("o/b/config.json");
  d.file("f.gguf");
  CHECK(*model_in_dir(d.dir.string(), "f") == (fs::canonical(d.dir) / "f.gguf").string());
  CHECK(*model_in_dir(d.dir.string(), "f.gguf") == (fs::canonical(d.dir) / "f.gguf").string());
  CHECK(model_in_dir(d.dir.string(), "a").has_value());
  CHECK(model_in_dir(d.dir.string(), "o/b").has_value());
  using namespace std::string_literals;
  for (const std::string& name : {""s, "."s, ".."s, "../models/a"s, "a/.."s, "a/../a"s, "/"s, "/etc"s, "a/"s,
                                  "/a"s, "o//b"s, "o/b/config.json"s, ".a"s, "o/.b"s, "a\0b"s, "nothing"s}) {
    CAPTURE(name);
    CHECK_FALSE(model_in_dir(d.dir.string(), name).has_value());
  }
  CHECK_FALSE(model_in_dir(d.dir.string(), "a/config.json").has_value());  // a file that is no model
  CHECK_FALSE(model_in_dir(d.dir.string(), std::string(100'000, 'n')).has_value());
}

TEST_CASE("models dir: a directory that cannot be read, or is too large, is an error that names it") {
  const directory d;
  for (const std::string& dir : {(d.root / "none").string(), std::string("/dev/null"), std::string()}) {
    CAPTURE(dir);
    const auto none = models_in(dir);
    REQUIRE_FALSE(none.has_value());
    CHECK_THAT(none.error().message, Catch::Contains(dir + ": "));
  }
  for (std::size_t i = 0; i < most_models_in_dir; ++i) d.file(std::to_string(i) + ".gguf");
  CHECK(d.names().size() == most_models_in_dir);
  d.file("one-more.gguf");
  const auto many = models_in(d.dir.string());
  REQUIRE_FALSE(many.has_value());
  CHECK_THAT(many.error().message, Catch::Contains("1000"));
}

}  // namespace weir::tests::models_dir_test
