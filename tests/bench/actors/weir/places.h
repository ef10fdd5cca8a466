// places.h — where the actors of a program live: on the contexts themselves, or newest first.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <memory>
#include <vector>

#include "tests/bench/actors/bench.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/weir/newest_first.h"

namespace bench {

class places : public contexts {
 public:
  explicit places(const task& t) : contexts(t.threads) {
    for (unsigned i = 0; t.newest_first && i < t.threads; ++i) {
      newest_.push_back(std::make_unique<newest_first>(context(i)));
    }
  }

  boost::asio::any_io_executor round_robin(std::size_t i) {
    if (newest_.empty()) return contexts::round_robin(i);
    return newest_[i % newest_.size()]->get_executor();
  }

 private:
  std::vector<std::unique_ptr<newest_first>> newest_;
};

}  // namespace bench
