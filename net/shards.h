// shards.h — the I/O threads: one io_context each, so that whatever lives on a shard needs no lock.
//
// Or one shard that somebody else runs: an embedding program's own executor. An exception that escapes a
// handler on one of the threads ends that handler's work and is noted; the thread goes on. Make them before
// the service whose streams post to them, and let them go after it. Thread safety: at() and size() from any
// thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/incidents.h"

namespace weir::net {

class shards {
 public:
  // `seen` learns of exceptions; it outlives the shards.
  explicit shards(std::size_t count,
                  std::shared_ptr<core::incidents> seen = std::make_shared<core::incidents>());
  // REQUIRES: runs one handler at a time.
  explicit shards(boost::asio::any_io_executor yours);
  ~shards();  // stops the threads and joins them; what was still posted is dropped

  std::size_t size() const noexcept { return all_.size(); }
  const boost::asio::any_io_executor& at(std::size_t i) const noexcept { return all_[i]; }
  bool run_themselves() const noexcept { return !threads_.empty(); }

 private:
  struct one;
  std::shared_ptr<core::incidents> seen_;
  std::vector<std::unique_ptr<one>> threads_;
  std::vector<boost::asio::any_io_executor> all_;
};

}  // namespace weir::net
