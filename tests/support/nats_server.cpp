#include "tests/support/nats_server.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

extern char** environ;

namespace weir::tests {
namespace {

namespace fs = std::filesystem;

// The port in the file that nats-server writes once it listens; 0: not yet.
unsigned short port_in(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  boost::system::error_code ec;
  const auto value = boost::json::parse(text.str(), ec);
  if (ec) return 0;
  const auto& listening = value.as_object().at("nats").as_array();
  const auto url = std::string(listening.at(0).as_string());
  return static_cast<unsigned short>(std::stoi(url.substr(url.rfind(':') + 1)));
}

std::vector<char*> pointers_to(std::vector<std::string>& all) {
  std::vector<char*> out;
  for (auto& one : all) out.push_back(one.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

fs::path nats_program() {
  std::string path = std::string(std::getenv("PATH") ? std::getenv("PATH") : "") + ":/usr/sbin";
  std::stringstream all(path);
  for (std::string folder; std::getline(all, folder, ':');)
    if (!folder.empty() && ::access((fs::path(folder) / "nats-server").c_str(), X_OK) == 0)
      return fs::path(folder) / "nats-server";
  return {};
}

scratch_directory::scratch_directory() {
  std::string name = (fs::temp_directory_path() / "weir-test-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()));
  path_ = name;
}

scratch_directory::~scratch_directory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

nats_server::nats_server(options o) : options_(std::move(o)) { start(); }

nats_server::~nats_server() { kill(); }

std::vector<std::string> nats_server::words() const {
  std::vector<std::string> out{nats_program().string(), "--ports_file_dir", scratch_.path().string()};
  if (!options_.port_in_config) {
    out.insert(out.end(), {"-a", "127.0.0.1"});
    out.insert(out.end(), {"-p", port_ ? std::to_string(port_) : "-1"});
  }
  out.insert(out.end(), {"-l", (scratch_.path() / "log").string()});
  out.insert(out.end(), options_.arguments.begin(), options_.arguments.end());
  return out;
}

void nats_server::start() {
  auto arguments = words();
  std::vector<std::string> variables;
  for (char** v = environ; *v; ++v) variables.emplace_back(*v);
  for (const auto& [name, value] : options_.environment) variables.push_back(name + "=" + value);
  const auto argv = pointers_to(arguments), envp = pointers_to(variables);
  const pid_t parent = ::getpid();
  child_ = ::fork();
  REQUIRE(child_ >= 0);
  if (child_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it does not outlive the test
    if (::getppid() == parent) ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  const auto file = scratch_.path() / ("nats-server_" + std::to_string(child_) + ".ports");
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  unsigned short port = 0;
  while ((port = port_in(file)) == 0 && std::chrono::steady_clock::now() < give_up &&
         ::waitpid(child_, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::ifstream log(scratch_.path() / "log");
  std::stringstream said;
  said << log.rdbuf();
  INFO(said.str());
  REQUIRE(port != 0);
  REQUIRE((port_ == 0 || port_ == port));
  port_ = port;
}

void nats_server::kill() {
  if (child_ <= 0) return;
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  child_ = -1;
}

void nats_server::start_again() {
  kill();
  start();
}

void nats_server::stop_running() { ::kill(child_, SIGSTOP); }
void nats_server::run_on() { ::kill(child_, SIGCONT); }

}  // namespace weir::tests
