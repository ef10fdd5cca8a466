// key_file.h — the file of --api-key-file: reads it, and notices when it has changed.
//
// A file that could not be read is read again until it could. It can be read while the process has no other
// descriptor left.
//
// Thread safety: one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "net/access/api_keys.h"
#include "net/descriptor.h"

namespace weir::net {

class key_file {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  // How often has_changed() is to be called.
  static constexpr std::chrono::milliseconds poll_every{250};
  // Time without a change after which whoever writes the file has most likely finished. Half of a file may
  // have no fault.
  static constexpr std::chrono::milliseconds still{1000};

  explicit key_file(std::string name);

  bool is_named() const noexcept { return !name_.empty(); }
  const std::string& name() const noexcept { return name_; }

  // The keys as the file has them now. Errors name the file, and the line and field that are wrong. A pipe
  // can be read once.
  core::result<std::vector<api_key>> read();

  // Whether the file is to be read again: by its inode, size and times it is not the one that was read last,
  // and it has been still.
  bool has_changed(time_point now);

 private:
  struct stamp {
    mode_t kind = 0;  // as S_IFREG; 0: there is no such file. The rest is 0 unless the file is regular
    dev_t device = 0;
    ino_t inode = 0;
    off_t bytes = 0;
    std::int64_t written_ns = 0, changed_ns = 0;
    bool operator==(const stamp&) const = default;
  };
  stamp look() const;
  // Fills `text`. Returns 0, or the reason as errno has it.
  int read_text(std::string& text);

  std::string name_;
  descriptor reserve_;  // gives way to the file where there is no other
  bool was_read_ = false;
  stamp read_, seen_;
  time_point seen_since_{};
};

}  // namespace weir::net
