#include "net/access/key_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/support/no_descriptors.h"

namespace weir::tests::key_file_test {

using namespace weir::net;

namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

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

// A file of keys, and the time at which it is looked at.
struct watched {
  explicit watched(const folder& where) : file(where.name()) {}

  bool changed_after(milliseconds more) {
    now += more;
    return file.has_changed(now);
  }
  // The first look only finds that the file is no longer the same.
  bool noticed() { return !changed_after(milliseconds(250)) && changed_after(key_file::still); }
  bool unchanged() { return !changed_after(key_file::still) && !changed_after(key_file::still); }

  key_file file;
  key_file::time_point now{std::chrono::hours(1)};
};

}  // namespace

TEST_CASE("key file: a change is noticed once the file has been still for a second, until it is read") {
  const folder here;
  here.write("alpha\n");
  watched w(here);
  REQUIRE(w.file.read()->size() == 1);
  CHECK(w.unchanged());

  here.replace("gamma\n");  // as long, and perhaps of the same moment
  CHECK_FALSE(w.changed_after(milliseconds(250)));
  CHECK_FALSE(w.changed_after(milliseconds(999)));
  CHECK(w.changed_after(milliseconds(1)));
  CHECK(w.changed_after(milliseconds(250)));
  REQUIRE(w.file.read()->size() == 1);
  CHECK(w.unchanged());
}

TEST_CASE("key file: a half-written file that has no fault is not read before its other half is there") {
  const folder here;
  here.write("alpha\nbeta\n");
  watched w(here);
  REQUIRE(w.file.read()->size() == 2);
  here.write("alpha\n");
  for (int i = 0; i < 3; ++i) CHECK_FALSE(w.changed_after(milliseconds(250)));
  here.write("alpha\nbeta\ngamma\n");
  for (int i = 0; i < 4; ++i) CHECK_FALSE(w.changed_after(milliseconds(250)));
  CHECK(w.changed_after(milliseconds(250)));
  CHECK(w.file.read()->size() == 3);
}

TEST_CASE("key file: a file with a fault, or that has gone, is told once and then when it is there again") {
  const folder here;
  here.write("alpha\n");
  watched w(here);
  REQUIRE(w.file.read().has_value());
  CHECK(w.unchanged());
  here.write("alpha\nbeta jobs=0\n");
  REQUIRE(w.noticed());
  const auto fault = w.file.read();
  REQUIRE(fault.has_error());
  CHECK(fault.error().message.find("line 2: jobs has to be") != std::string::npos);
  CHECK(w.unchanged());

  fs::remove(here.name());
  REQUIRE(w.noticed());
  CHECK(w.file.read().error().message ==
        "--api-key-file " + here.name() + ": cannot be read: No such file or directory");
  CHECK(w.unchanged());
  here.write("alpha\n");
  REQUIRE(w.noticed());
  CHECK(w.file.read()->size() == 1);
}

TEST_CASE("key file: what is no regular file is not opened again, which could wait for ever") {
  const folder here;
  here.write("alpha\n");
  watched w(here);
  REQUIRE(w.file.read().has_value());
  fs::remove(here.name());
  REQUIRE(::mkfifo(here.name().c_str(), 0600) == 0);  // without a writer
  REQUIRE(w.noticed());
  CHECK(w.file.read().error().message.find("only a regular file is read again") != std::string::npos);
  CHECK(w.unchanged());
}

TEST_CASE("key file: a changed file is read where the process has no other descriptor left") {
  const folder here;
  here.write("alpha\nbeta\n");
  watched w(here);
  REQUIRE(w.file.read()->size() == 2);
  here.replace("alpha\n");
  std::size_t keys = 0;
  {
    const no_descriptors left;
    REQUIRE(w.noticed());
    for (int i = 0; i < 2; ++i) {
      const auto got = w.file.read();
      keys += got ? got->size() : 100;
    }
  }
  CHECK(keys == 2);
  CHECK(w.unchanged());
}

TEST_CASE("key file: a file that could not be read is read again until it could") {
  const folder here;
  here.write("alpha\nbeta\n");
  std::string why;
  bool wanted = true, read = false;
  {
    no_descriptors left;
    watched w(here);  // finds no descriptor for its reserve
    for (int i = 0; i < 3; ++i) {
      const auto got = w.file.read();
      why = got ? "" : got.error().message;
      w.changed_after(milliseconds(250));
      wanted = wanted && w.changed_after(key_file::still);
    }
    left.give(1);
    read = w.file.read().has_value();
    wanted = wanted && !w.changed_after(key_file::still);
  }
  CHECK(why == "--api-key-file " + here.name() + ": cannot be read: Too many open files");
  CHECK(wanted);
  CHECK(read);
}

}  // namespace weir::tests::key_file_test
