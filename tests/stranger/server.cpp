#include "tests/stranger/server.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/stranger/tools.h"

namespace weir::stranger {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::chrono::seconds longest_start{60};
constexpr off_t words_kept = 64 * 1024;
constexpr off_t words_most = 1024 * 1024;

// Every time that a client can make the server wait is short, so that what a round leaves behind is gone
// soon.
std::vector<std::string> command_of(const options& o, const std::string& key_file,
                                    const std::string& template_file) {
  std::vector<std::string> c = {o.weir,
                                "serve",
                                "--listen",
                                "127.0.0.1:0",
                                "--handshake-ms",
                                "1000",
                                "--auth-ms",
                                "1000",
                                "--detach-grace-ms",
                                "500",
                                "--write-ms",
                                "1000",
                                "--drain-s",
                                "2",
                                "--retain-s",
                                "1",
                                "--store-s",
                                "1",
                                "--store-mb",
                                "16",
                                "--grammar-cache",
                                "16M",
                                "--on-demand",
                                "--stay-s",
                                "1",
                                "--load-wait-s",
                                "2",
                                "--swap-wait-s",
                                "1",
                                "--sleep-mb",
                                "64"};
  const std::vector<std::string> device =
      o.model == "sim" ? std::vector<std::string>{"--device", "sim:rate=2000"}
                       : std::vector<std::string>{"--model", o.model, "--device", "cpu", "--threads", "1"};
  c.insert(c.end(), device.begin(), device.end());
  c.insert(c.end(), {"--chat-template", template_file});
  if (!key_file.empty()) c.insert(c.end(), {"--api-key-file", key_file});
  return c;
}

void bound(decltype(RLIMIT_AS) what, std::size_t most) {
  rlimit r{most, most};
  setrlimit(what, &r);
}

// The path of a new file with this text.
std::string write_file(std::string_view text) {
  char path[] = "/tmp/stranger-XXXXXX";
  const int fd = mkstemp(path);
  const bool whole = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) close(fd);
  return whole ? path : "";
}

std::string write_keys(const target& t) {
  std::string text;
  for (const auto& k : t.keys) text += k + (k == t.bound_key ? " models=" + t.model : "") + "\n";
  text += t.admin_key + " admin\n";
  return write_file(text);
}

}  // namespace

std::unique_ptr<server> server::start(const options& o, std::string& fault) {
  std::unique_ptr<server> s(new server);
  if (o.keys) {
    s->target_.keys = {"first-key-0123456789", "second-key-abcdefghi", "third-key-ABCDEFGHIJ"};
    s->target_.admin_key = "admin-key-0123456789";
    s->target_.bound_key = "third-key-ABCDEFGHIJ";
  }
  if (o.model == "sim") {
    s->target_.guest_source = "sim:rate=2000,mb=30,sleep=20/20";
    s->target_.slow_source = "sim:rate=2000,mb=30,load=300,sleep=20/300";
  } else {
    s->target_.model = "rill";
  }
  if (o.keys) s->key_file_ = write_keys(s->target_);
  s->template_file_ = write_file(calling_template());
  const bool ready = s->spawn(o) && s->read_ready_line();
  // Both were read at the start; they are removed now, so that an interrupt leaves no file.
  for (const auto& file : {s->key_file_, s->template_file_})
    if (!file.empty()) unlink(file.c_str());
  if (ready) return s;
  const bool lived = s->lives();
  fault = "the server never said that it is ready" + (lived ? std::string() : ": " + s->end_in_words()) +
          "\n" + s->last_words();
  return nullptr;
}

bool server::spawn(const options& o) {
  int out[2];
  words_ = memfd_create("stderr of weir", MFD_CLOEXEC);
  if (words_ < 0 || pipe2(out, O_CLOEXEC) != 0) return false;
  fcntl(words_, F_SETFL, O_APPEND);
  out_ = out[0];
  const std::vector<std::string> command = command_of(o, key_file_, template_file_);
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    dup2(out[1], STDOUT_FILENO);
    dup2(words_, STDERR_FILENO);
    bound(RLIMIT_CORE, 0);
    if (o.address_space) bound(RLIMIT_AS, o.address_space);
    if (o.descriptors) bound(RLIMIT_NOFILE, o.descriptors);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(out[1]);
  return pid_ > 0;
}

bool server::read_ready_line() {
  constexpr std::string_view before = "weir ready http://127.0.0.1:";
  std::string said;
  const auto until = clock::now() + longest_start;
  while (said.find('\n') == said.npos && clock::now() < until) {
    pollfd p{out_, POLLIN, 0};
    char bytes[512];
    if (poll(&p, 1, 100) <= 0) continue;
    const ssize_t n = read(out_, bytes, sizeof bytes);
    if (n <= 0) return false;
    said.append(bytes, static_cast<std::size_t>(n));
  }
  const auto at = said.find(before);
  if (at == said.npos) return false;
  target_.port = static_cast<std::uint16_t>(std::atoi(said.c_str() + at + before.size()));
  return target_.port != 0;
}

server::~server() {
  if (lives()) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {out_, words_}) {
    if (fd >= 0) close(fd);
  }
}

bool server::lives() {
  if (pid_ <= 0 || reaped_) return false;
  reaped_ = waitpid(pid_, &wait_status_, WNOHANG) == pid_;
  return !reaped_;
}

std::string server::end_in_words() {
  if (WIFSIGNALED(wait_status_)) {
    return std::string("the server was ended by signal ") + strsignal(WTERMSIG(wait_status_));
  }
  return "the server ended with " + std::to_string(WEXITSTATUS(wait_status_));
}

std::string server::last_words() {
  const off_t size = lseek(words_, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - words_kept);
  std::string text(static_cast<std::size_t>(size - from), '\0');
  const ssize_t n = pread(words_, text.data(), text.size(), from);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

std::string server::sanitizer_report() {
  const off_t size = lseek(words_, 0, SEEK_END);
  std::string news(static_cast<std::size_t>(size - looked_), '\0');
  if (pread(words_, news.data(), news.size(), looked_) < 0) return {};
  looked_ = size;
  if (size > words_most) {  // the server appends, so it goes on at the beginning
    if (ftruncate(words_, 0) == 0) looked_ = 0;
  }
  for (const char* mark : {"ERROR: AddressSanitizer", "ERROR: ThreadSanitizer",
                           "runtime error:", "WARNING: ThreadSanitizer", "ERROR: LeakSanitizer"}) {
    if (const auto at = news.find(mark); at != news.npos) return news.substr(at, 8000);
  }
  return {};
}

std::size_t server::descriptors() const {
  DIR* folder = opendir(("/proc/" + std::to_string(pid_) + "/fd").c_str());
  if (!folder) return 0;
  std::size_t n = 0;
  while (const dirent* entry = readdir(folder)) n += entry->d_name[0] != '.';
  closedir(folder);
  return n;
}

std::string server::connections() const {
  constexpr std::string_view listening = "0A";
  char ours[8];
  std::snprintf(ours, sizeof ours, ":%04X", target_.port);
  std::ifstream table("/proc/net/tcp");
  std::string all;
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string number, local, remote, state;
    fields >> number >> local >> remote >> state;
    if (local.ends_with(ours) && state != listening) all += line + "\n";
  }
  return all;
}

// Calls use(number, name, state, the fields behind the state) for each thread of the process.
template <class Use>
static void each_thread(pid_t pid, const Use& use) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task/";
  DIR* folder = opendir(tasks.c_str());
  if (!folder) return;
  while (const dirent* entry = readdir(folder)) {
    std::string stat;
    std::getline(std::ifstream(tasks + entry->d_name + "/stat"), stat);  // 17 (weir-mask) R 1 …
    const auto from = stat.find('('), to = stat.rfind(')');
    if (to == stat.npos || to + 3 >= stat.size()) continue;
    use(std::atoi(entry->d_name), stat.substr(from + 1, to - from - 1), stat[to + 2], stat.substr(to + 3));
  }
  closedir(folder);
}

std::string server::busy_thread() const {
  std::string busy;
  each_thread(pid_, [&](int, const std::string& name, char state, const std::string&) {
    if (state == 'R') busy = name;
  });
  return busy;
}

std::string server::look_into(const std::string& thread) {
  int number = 0;
  const auto ticks = [&] {
    long sum = 0;
    each_thread(pid_, [&](int n, const std::string& name, char, const std::string& rest) {
      if (name != thread) return;
      number = n;
      std::istringstream fields(rest);
      std::string skipped;
      for (int i = 0; i < 10; ++i) fields >> skipped;  // up to the faults of its children
      long user = 0, system = 0;
      fields >> user >> system;
      sum += user + system;
    });
    return sum;
  };
  const long before = ticks();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const long ms = (ticks() - before) * 1000 / sysconf(_SC_CLK_TCK);
  std::string said = "it took " + std::to_string(ms) + " ms of a second";
  if (number == 0) return said;
  sanitizer_report();  // what was said before
  syscall(SYS_tgkill, pid_, number, SIGSEGV);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  return said + "\n" + sanitizer_report();
}

std::size_t server::status_field(const std::string& name) const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":"))
      return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
  }
  return 0;
}

std::size_t server::resident() const { return status_field("VmRSS"); }
std::size_t server::peak() const { return status_field("VmHWM"); }

void server::forget_peak() { std::ofstream("/proc/" + std::to_string(pid_) + "/clear_refs") << "5"; }

std::string server::stop(milliseconds most) {
  if (!lives()) return end_in_words();
  kill(pid_, SIGTERM);
  const auto until = clock::now() + most;
  while (lives() && clock::now() < until) std::this_thread::sleep_for(milliseconds(10));
  if (lives()) return "the server did not end after SIGTERM";
  return WIFEXITED(wait_status_) && WEXITSTATUS(wait_status_) == 0 ? "" : end_in_words();
}

}  // namespace weir::stranger
