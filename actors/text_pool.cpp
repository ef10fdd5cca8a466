#include "actors/text_pool.h"

#include <pthread.h>

#include <algorithm>

namespace weir::actors {

text_pool::text_pool(unsigned threads) {
  for (unsigned i = 0; i < std::max(1u, threads); ++i) threads_.emplace_back([this] { run(); });
}

text_pool::~text_pool() {
  task dropped;
  while (work_.try_dequeue(dropped)) {
  }
  for (std::size_t i = 0; i < threads_.size(); ++i) work_.enqueue(task{});
  threads_.clear();
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
