// child.h — another process of this same program: a benchmark's server, or a load beside it.
//
// Thread safety: none; one owner. The destructor ends the child (SIGTERM, and after some seconds SIGKILL) and
// waits.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/error.h"

namespace weir::apps::bench {

class child {
 public:
  // The program with these arguments; its standard output comes here, its errors go where ours do.
  static core::result<child> start(const std::vector<std::string>& arguments);
  child(child&& other) noexcept;
  child& operator=(child&&) = delete;
  ~child();

  // The next line that begins so, without its end; empty once the child has closed its output. Blocks.
  std::string line_that_begins(std::string_view with);

 private:
  child(pid_t pid, int output) : pid_(pid), output_(output) {}

  pid_t pid_ = -1;
  int output_ = -1;
  std::string read_;  // and not yet asked for
};

}  // namespace weir::apps::bench
