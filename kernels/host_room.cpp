#include "kernels/host_room.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "kernels/host_memory.h"

namespace weir::kernels {
namespace {

// The names of the files in which a version of cgroups has its figures.
struct version {
  const char *limit, *used, *stat, *inactive, *active;
};
constexpr version first{"memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat",
                        "total_inactive_file", "total_active_file"};
constexpr version second{"memory.max", "memory.current", "memory.stat", "inactive_file", "active_file"};

// The number in a file; no_limit where the file is missing or says "max".
std::uint64_t number_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::uint64_t n = 0;
  return in >> n ? n : no_limit;
}

// The bytes of cached files, which the system takes back before it ends a process.
std::uint64_t cached(const std::filesystem::path& stat, const version& v) {
  std::ifstream in(stat);
  std::uint64_t sum = 0, n = 0;
  for (std::string key; in >> key >> n;)
    if (key == v.inactive || key == v.active) sum += n;
  return sum;
}

std::uint64_t room_of(const std::filesystem::path& group, const version& v) {
  const std::uint64_t limit = number_in(group / v.limit), used = number_in(group / v.used);
  if (limit == no_limit || used == no_limit) return no_limit;
  const std::uint64_t held = used - std::min(used, cached(group / v.stat, v));
  return limit - std::min(limit, held);
}

// The path of the process in the hierarchy, from the line of version 2 ("0::/…") or of version 1's memory
// controller; it begins with '/'. Empty: neither line is there.
std::string path_in(std::string_view membership, bool& is_first) {
  std::istringstream in{std::string(membership)};
  for (std::string line; std::getline(in, line);) {
    is_first = line.find(":memory:") != line.npos;
    if (is_first || line.starts_with("0::")) return line.substr(line.find(':', line.find(':') + 1) + 1);
  }
  return {};
}

}  // namespace

std::uint64_t cgroup_room(const std::filesystem::path& root, std::string_view membership) {
  bool is_first = false;
  std::string path = path_in(membership, is_first);
  const version& v = is_first ? first : second;
  const std::filesystem::path top = is_first ? root / "memory" : root;
  // A container often has its own cgroup as the root, whatever its path says.
  std::uint64_t least = room_of(top, v);
  for (; path.size() > 1; path.erase(path.rfind('/')))
    least = std::min(least, room_of(top / path.substr(1), v));
  return least;
}

std::uint64_t host_room() {
  std::ifstream in("/proc/self/cgroup");
  const std::string membership{std::istreambuf_iterator<char>(in), {}};
  const std::uint64_t free = host_free_bytes(nullptr);
  return std::min(free == 0 ? no_limit : free, cgroup_room("/sys/fs/cgroup", membership));
}

}  // namespace weir::kernels
