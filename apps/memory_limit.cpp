#include "apps/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace weir::apps {
namespace {

constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

// The number in a file of the kernel's; `none` if the file is missing or says "max".
std::uint64_t number_in(const std::string& path) {
  std::ifstream in(path);
  std::uint64_t n = 0;
  return in >> n ? n : none;
}

// The path of this process in the hierarchy of cgroups, version 2 ("0::/…") or of version 1's memory
// controller.
std::string cgroup_path(bool& version_1) {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    version_1 = line.find(":memory:") != line.npos;
    if (version_1 || line.starts_with("0::")) return line.substr(line.find(':', line.find(':') + 1) + 1);
  }
  return {};
}

// The smallest limit of the process's cgroup and of the cgroups that contain it.
std::uint64_t cgroup_limit() {
  bool version_1 = false;
  std::string path = cgroup_path(version_1);
  const std::string root = version_1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
  const char* const file = version_1 ? "/memory.limit_in_bytes" : "/memory.max";
  std::uint64_t least = number_in(root + file);
  for (; path.size() > 1; path.erase(path.rfind('/'))) least = std::min(least, number_in(root + path + file));
  return least;
}

std::uint64_t machine_memory() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::uint64_t process_limit(std::uint64_t max_memory) {
  return max_memory ? max_memory : std::min(cgroup_limit(), machine_memory());
}

core::result<std::uint64_t> clients_limit(std::uint64_t process, std::uint64_t resident, bool asked_for) {
  const std::uint64_t left = process > resident ? process - resident : 0;
  const std::uint64_t room = left - left / 4;
  if (room >= least_for_clients || !asked_for) return std::max(room, least_for_clients);
  auto e = core::make_error(
      core::errc::does_not_fit,
      "--max-memory {} MB: {} MB are taken once the models are loaded, and {} MB are left for clients, "
      "who need {} MB at least",
      process >> 20, resident >> 20, room >> 20, least_for_clients >> 20);
  e.param = "max-memory";
  return e;
}

}  // namespace weir::apps
