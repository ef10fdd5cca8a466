// key_file.h — the file of --api-key-file: reads it, and notices when it has changed.
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

namespace weir::apps {

class key_file {
 public:
  // How often has_changed() is to be called: a change is noticed within two calls.
  static constexpr std::chrono::milliseconds poll_every{250};

  explicit key_file(std::string name) : name_(std::move(name)) {}

  bool is_named() const noexcept { return !name_.empty(); }
  const std::string& name() const noexcept { return name_; }

  // The keys as the file has them now. Errors name the file, and the line and field that are wrong. A pipe
  // can be read once.
  core::result<std::vector<net::api_key>> read();

  // Whether the file has changed since the last read(), by its inode, size and times, but not since the last
  // call of this function: whoever writes it has most likely finished.
  bool has_changed();

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

  std::string name_;
  bool was_read_ = false;
  stamp read_, seen_;
};

}  // namespace weir::apps
