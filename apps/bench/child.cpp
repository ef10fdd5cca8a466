#include "apps/bench/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace weir::apps::bench {
namespace {

constexpr std::chrono::seconds patience{10};
constexpr std::chrono::milliseconds look_again{20};

}  // namespace

core::result<child> child::start(const std::vector<std::string>& arguments) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
    return core::make_error(core::errc::internal, "no pipe: {}", std::strerror(errno));
  std::vector<std::string> all{"weir"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& a : all) argv.push_back(a.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  if (failed == 0) return child(pid, pipe[0]);
  ::close(pipe[0]);
  return core::make_error(core::errc::internal, "this program cannot be started again: {}",
                          std::strerror(failed));
}

child::child(child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      read_(std::move(other.read_)) {}

child::~child() {
  if (output_ >= 0) ::close(output_);
  if (pid_ < 0) return;
  ::kill(pid_, SIGTERM);
  const auto until = std::chrono::steady_clock::now() + patience;
  while (::waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > until) ::kill(pid_, SIGKILL);
    std::this_thread::sleep_for(look_again);
  }
}

std::string child::line_that_begins(std::string_view with) {
  for (;;) {
    for (auto end = read_.find('\n'); end != read_.npos; end = read_.find('\n')) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      if (line.starts_with(with)) return line;
    }
    std::array<char, 4096> room{};
    const auto got = ::read(output_, room.data(), room.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    read_.append(room.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace weir::apps::bench
