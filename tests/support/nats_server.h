// nats_server.h — a real nats-server as a child process, on a loopback address and a port that is free.
//
// Thread safety: one thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace weir::tests {

// Where the program is, or an empty path. A test that needs it says by WARN() that it is left out.
std::filesystem::path nats_program();

// A directory that is there as long as this object.
class scratch_directory {
 public:
  scratch_directory();
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;
  ~scratch_directory();
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

class nats_server {
 public:
  struct options {
    std::vector<std::string> arguments;              // further ones
    std::map<std::string, std::string> environment;  // further variables
    bool port_in_config = false;                     // the configuration names an address with port -1
  };
  // Waits until it takes connections. The test fails where it does not.
  nats_server() : nats_server(options{}) {}
  explicit nats_server(options o);
  nats_server(const nats_server&) = delete;
  nats_server& operator=(const nats_server&) = delete;
  ~nats_server();  // kills it

  unsigned short port() const noexcept { return port_; }
  std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }
  void kill();          // SIGKILL, and waits for its end
  void start_again();   // on the same port
  void stop_running();  // SIGSTOP: its connections stay, and it does nothing
  void run_on();        // SIGCONT

 private:
  void start();
  std::vector<std::string> words() const;

  scratch_directory scratch_;
  options options_;
  unsigned short port_ = 0;
  pid_t child_ = -1;
};

}  // namespace weir::tests
