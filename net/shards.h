// shards.h — the I/O threads: one io_context each, so that whatever lives on a shard needs no lock.
//
// Make them before the service whose streams post to them, and let them go after it.
// Thread safety: at() and size() from any thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <memory>
#include <vector>

namespace weir::net {

class shards {
 public:
  explicit shards(std::size_t count);
  ~shards();  // stops the threads and joins them; what was still posted is dropped

  std::size_t size() const noexcept { return all_.size(); }
  boost::asio::any_io_executor at(std::size_t i) const;

 private:
  struct one;
  std::vector<std::unique_ptr<one>> all_;
};

}  // namespace weir::net
