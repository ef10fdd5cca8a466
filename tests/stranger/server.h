// server.h — the server under test: a process of our own, what it said, and what the system says of it.
//
// Thread safety: one thread.
//
// Invariant: the process ends with the object, and with this program, however the program ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/stranger/options.h"
#include "tests/stranger/target.h"

namespace weir::stranger {

class server {
 public:
  // Starts a server and waits until it is ready. Null: it never was, and `fault` has what it said.
  static std::unique_ptr<server> start(const options& o, std::string& fault);
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  const target& at() const { return target_; }
  bool lives();                    // whether the process runs; asks the system
  std::string end_in_words();      // how it ended; call it once lives() is false
  std::string last_words();        // the end of what it wrote to stderr, at most 64 KiB
  std::string sanitizer_report();  // empty: none since the last time it was asked

  std::size_t descriptors() const;
  // its sockets but the listening one, as /proc/net/tcp shows them, a line each
  std::string connections() const;
  std::string busy_thread() const;  // the name of a thread that runs or could run; empty: all of them wait
  // What the thread of that name does: its processor time in a second, and where a sanitizer shows it, its
  // stack. The server ends by that.
  std::string look_into(const std::string& thread);
  std::size_t resident() const;     // bytes
  std::size_t peak() const;         // bytes, the most since forget_peak()
  void forget_peak();

  // Asks it to end. Empty if it ended with 0 in time.
  std::string stop(std::chrono::milliseconds most);

 private:
  server() = default;
  bool spawn(const options& o);
  bool read_ready_line();
  std::size_t status_field(const std::string& name) const;

  target target_;
  pid_t pid_ = -1;
  bool reaped_ = false;
  int wait_status_ = 0;
  int out_ = -1;      // its stdout
  int words_ = -1;    // its stderr, a file in memory
  off_t looked_ = 0;  // bytes of words_ that were searched
  std::string key_file_, template_file_;
};

}  // namespace weir::stranger
