// child.h — a child process that runs this same program, such as the server of a benchmark.
//
// The destructor ends the child, by SIGTERM and after some seconds by SIGKILL, and waits for its end.
//
// Thread safety: none; one owner.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/error.h"

namespace weir::apps::bench {

class child {
 public:
  // Runs the program with these arguments. line_that_begins() reads its standard output. Its standard error
  // is that of this process.
  static core::result<child> start(const std::vector<std::string>& arguments);
  child(child&& other) noexcept;
  child& operator=(child&&) = delete;
  ~child();

  // Blocks until the child has written a line that begins with `with`, and returns the line without its end;
  // empty if the child has closed its output.
  std::string line_that_begins(std::string_view with);

 private:
  child(pid_t pid, int output) : pid_(pid), output_(output) {}

  pid_t pid_ = -1;
  int output_ = -1;   // reading end of the child's standard output
  std::string read_;  // output that was read and is not yet returned
};

}  // namespace weir::apps::bench
