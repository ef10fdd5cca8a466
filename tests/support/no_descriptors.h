// no_descriptors.h — takes all file descriptors of the process, for tests of what works without one.
#pragma once

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <vector>

#include "net/descriptor.h"

namespace weir::tests {

// Leaves the process no descriptor, until it goes.
class no_descriptors {
 public:
  no_descriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = 256;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    for (auto d = net::descriptor::spare(); !d.empty(); d = net::descriptor::spare())
      held_.push_back(std::move(d));
  }
  no_descriptors(const no_descriptors&) = delete;
  no_descriptors& operator=(const no_descriptors&) = delete;
  ~no_descriptors() {
    held_.clear();
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  // Gives `n` of them back.
  void give(std::size_t n) { held_.resize(held_.size() - n); }

 private:
  rlimit before_{};
  std::vector<net::descriptor> held_;
};

}  // namespace weir::tests
