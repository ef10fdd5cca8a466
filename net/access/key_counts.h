// key_counts.h — what the clients of a server have used, by the names of their keys. It never shows a key.
//
// Keys with the same name are counted together, and so are all keys without one, under unnamed_key. What was
// counted stays when a key leaves the file or gets another name: a job counts for the name that its key had
// when the job was asked for.
//
// Thread safety: any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "actors/job_account.h"

namespace weir::net {

inline constexpr std::string_view unnamed_key = "(unnamed)";  // no key can have this name

class key_counts {
 public:
  // The account of all keys with this name; a new one if there is none yet. Empty: that of unnamed_key.
  std::shared_ptr<actors::job_account> of(std::string_view name) {
    const std::lock_guard hold(lock_);
    auto& account = accounts_[std::string(name.empty() ? unnamed_key : name)];
    if (!account) account = std::make_shared<actors::job_account>();
    return account;
  }

  // A copy of the list, by name. The accounts go on counting.
  std::map<std::string, std::shared_ptr<const actors::job_account>> all() const {
    const std::lock_guard hold(lock_);
    return {accounts_.begin(), accounts_.end()};
  }

 private:
  mutable std::mutex lock_;
  std::map<std::string, std::shared_ptr<actors::job_account>> accounts_;
};

}  // namespace weir::net
