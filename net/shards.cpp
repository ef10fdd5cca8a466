#include "net/shards.h"

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <thread>

namespace weir::net {

struct shards::one {
  boost::asio::io_context io{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  std::thread thread;

  explicit one(core::incidents& seen) : thread([this, &seen] { run(seen); }) {}

  void run(core::incidents& seen) {
    pthread_setname_np(pthread_self(), "weir-io");
    while (!core::contained(seen, "a shard's thread", [this] { io.run(); })) {
    }
  }
};

shards::shards(std::size_t count, std::shared_ptr<core::incidents> seen) : seen_(std::move(seen)) {
  for (std::size_t i = 0; i < count; ++i) {
    threads_.push_back(std::make_unique<one>(*seen_));
    all_.push_back(threads_.back()->io.get_executor());
  }
}

shards::shards(boost::asio::any_io_executor yours) { all_.push_back(std::move(yours)); }

shards::~shards() {
  all_.clear();
  for (auto& s : threads_) s->io.stop();
  for (auto& s : threads_) s->thread.join();
}

}  // namespace weir::net
