#include "kernels/host_room.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <string>

#include "kernels/host_memory.h"
#include "tests/support/data.h"

namespace weir::tests::host_room_test {

using namespace weir::kernels;

namespace {

// A hierarchy of cgroups: files by their paths.
class groups {
 public:
  explicit groups(const std::map<std::string, std::string>& files) {
    for (const auto& [name, text] : files) {
      const auto path = dir_.path() / name;
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << text;
    }
  }
  std::uint64_t room(const char* membership) const { return cgroup_room(dir_.path(), membership); }

 private:
  tests::temporary_dir dir_;
};

}  // namespace

TEST_CASE("the smallest room of a cgroup and of those that contain it counts, without cached files") {
  const groups g({{"memory.max", "max"},
                  {"memory.current", "5000"},
                  {"a/memory.max", "1000"},
                  {"a/memory.current", "700"},
                  {"a/memory.stat", "anon 400\ninactive_file 200\nactive_file 50\nslab 7\n"},
                  {"a/b/memory.max", "900"},
                  {"a/b/memory.current", "100"},
                  {"full/memory.max", "900"},
                  {"full/memory.current", "950"}});
  CHECK(g.room("0::/\n") == no_limit);
  CHECK(g.room("0::/a\n") == 1000 - (700 - 250));
  CHECK(g.room("1:name=systemd:/x\n0::/a/b\n") == 550);
  CHECK(g.room("0::/full\n") == 0);
  CHECK(g.room("0::/elsewhere/entirely\n") == no_limit);
  CHECK(g.room("") == no_limit);
}

TEST_CASE("a container whose own cgroup is the root has that one's room") {
  const groups g({{"memory.max", "800"}, {"memory.current", "300"}});
  CHECK(g.room("0::/\n") == 500);
  CHECK(g.room("0::/outer/path/that/is/not/here\n") == 500);
}

TEST_CASE("limits of the memory controller of version 1 count, and those that are none do not") {
  const groups g({{"memory/memory.limit_in_bytes", "9223372036854771712"},
                  {"memory/memory.usage_in_bytes", "100"},
                  {"memory/job/memory.limit_in_bytes", "4096"},
                  {"memory/job/memory.usage_in_bytes", "4000"},
                  {"memory/job/memory.stat", "cache 9\ntotal_inactive_file 1000\ntotal_active_file 24\n"}});
  CHECK(g.room("11:cpu:/x\n4:memory:/job\n") == 4096 - (4000 - 1024));
  CHECK(g.room("4:memory:/\n") > 1ull << 60);
}

TEST_CASE("a process has some room, and no more than the system reports as available") {
  const std::uint64_t room = host_room();
  CHECK(room > 0);
  CHECK(room <= 2 * host_free_bytes(nullptr));  // measured at another moment
}

}  // namespace weir::tests::host_room_test
