#include "apps/key_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace weir::apps {
namespace {

namespace fs = std::filesystem;

struct folder {
  folder() : at(fs::temp_directory_path() / ("weir-key-file-" + std::to_string(::getpid()))) {
    fs::create_directories(at);
  }
  ~folder() { fs::remove_all(at); }
  std::string name() const { return at / "keys"; }
  void write(const std::string& text) const { std::ofstream(at / "keys") << text; }
  void replace(const std::string& text) const {
    std::ofstream(at / "new") << text;
    fs::rename(at / "new", at / "keys");
  }
  const fs::path at;
};

// Whether the change is noticed at the next calls; the first only finds that the file is no longer the same.
bool noticed(key_file& f) { return !f.has_changed() && f.has_changed(); }

}  // namespace

TEST_CASE("key_file: a change is noticed once it has settled, and no longer once it was read") {
  const folder here;
  here.write("alpha\n");
  key_file f(here.name());
  REQUIRE(f.read()->size() == 1);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(f.has_changed());

  here.replace("gamma\n");  // as long, and perhaps of the same moment
  CHECK_FALSE(f.has_changed());
  here.write("alpha\nbeta\n");  // still being written
  CHECK(noticed(f));
  CHECK(f.has_changed());  // until it is read
  REQUIRE(f.read()->size() == 2);
  CHECK_FALSE(f.has_changed());
}

TEST_CASE("key_file: a file with a fault, or that has gone, is told once and then when it is there again") {
  const folder here;
  here.write("alpha\n");
  key_file f(here.name());
  REQUIRE(f.read().has_value());
  CHECK_FALSE(f.has_changed());
  here.write("alpha\nbeta jobs=0\n");
  REQUIRE(noticed(f));
  const auto fault = f.read();
  REQUIRE(fault.has_error());
  CHECK(fault.error().message.find("line 2: jobs has to be") != std::string::npos);
  CHECK_FALSE(f.has_changed());

  fs::remove(here.name());
  REQUIRE(noticed(f));
  CHECK(f.read().error().message == "--api-key-file " + here.name() + ": cannot be read");
  CHECK_FALSE(f.has_changed());
  here.write("alpha\n");
  REQUIRE(noticed(f));
  CHECK(f.read()->size() == 1);
}

TEST_CASE("key_file: what is no regular file is not opened again, which could wait for ever") {
  const folder here;
  here.write("alpha\n");
  key_file f(here.name());
  REQUIRE(f.read().has_value());
  fs::remove(here.name());
  REQUIRE(::mkfifo(here.name().c_str(), 0600) == 0);  // without a writer
  REQUIRE(noticed(f));
  CHECK(f.read().error().message.find("only a regular file is read again") != std::string::npos);
  CHECK_FALSE(f.has_changed());
}

}  // namespace weir::apps
