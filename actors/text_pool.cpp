#include "actors/text_pool.h"

#include <pthread.h>

#include <algorithm>
#include <boost/asio/post.hpp>

namespace weir::actors {

text_pool::text_pool(unsigned threads, boost::asio::any_io_executor instead) : instead_(std::move(instead)) {
  if (instead_) return;
  for (unsigned i = 0; i < std::max(1u, threads); ++i) threads_.emplace_back([this] { run(); });
}

text_pool::~text_pool() {
  task dropped;
  while (work_.try_dequeue(dropped)) {
  }
  for (std::size_t i = 0; i < threads_.size(); ++i) work_.enqueue(task{});
  threads_.clear();
}

void text_pool::post(task t) {
  if (instead_) return boost::asio::post(instead_, std::move(t));
  work_.enqueue(std::move(t));
}

void text_pool::run() {
  pthread_setname_np(pthread_self(), "weir-text");
  for (task t;;) {
    work_.wait_dequeue(t);
    if (!t) return;
    t();
    t = nullptr;
  }
}

}  // namespace weir::actors
