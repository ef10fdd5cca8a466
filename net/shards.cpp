#include "net/shards.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <thread>

namespace weir::net {

struct shards::one {
  boost::asio::io_context io{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  std::thread thread{[this] { io.run(); }};
};

shards::shards(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) all_.push_back(std::make_unique<one>());
}

shards::~shards() {
  for (auto& s : all_) s->io.stop();
  for (auto& s : all_) s->thread.join();
}

boost::asio::any_io_executor shards::at(std::size_t i) const { return all_[i]->io.get_executor(); }

}  // namespace weir::net
