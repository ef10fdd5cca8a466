// shards.h — the I/O threads. Each has its own io_context, so objects of one shard need no lock.
//
// In an embedding program there is one shard, which is the program's own executor and has no thread here. An
// exception that escapes from a handler ends that handler and is noted; the thread goes on. Streams of a
// service post to the shards, so the shards must be constructed before the service and destroyed after it.
//
// Thread safety: at() and size() from any thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/incidents.h"

namespace weir::net {

class shards {
 public:
  // `seen`: where exceptions are noted.
  explicit shards(std::size_t count,
                  std::shared_ptr<core::incidents> seen = std::make_shared<core::incidents>());
  // REQUIRES: `yours` runs one handler at a time.
  explicit shards(boost::asio::any_io_executor yours);
  ~shards();  // stops and joins the threads; handlers that have not run are dropped

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
