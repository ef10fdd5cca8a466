// profile.h — a backend that times each operation of another: where a step's time goes.
//
// Thread safety: as the backend that it times.
#pragma once

#include <boost/json/array.hpp>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "kernels/traffic.h"

namespace weir::apps::bench {

class profile {
 public:
  explicit profile(std::shared_ptr<const kernels::backend> of);

  // Runs everything on the other backend, and counts here. REQUIRES: this outlives every use of it.
  std::shared_ptr<const kernels::backend> table() const;

  void clear() { lines_.clear(); }

  // Since clear(), the longest first: operation (products by the shape of their matrix), calls, µs, share of
  // all that was timed, GB/s.
  boost::json::array figures() const;

  // For the entries of the table.
  const kernels::backend& inner() const { return *of_; }
  void add(const char* operation, const kernels::matrix* by, double seconds, const kernels::traffic& t);

 private:
  struct line {
    const char* operation;
    std::uint32_t rows = 0, cols = 0;  // of the matrix
    std::uint64_t calls = 0, bytes = 0;
    double seconds = 0;
  };

  std::shared_ptr<const kernels::backend> of_;
  kernels::backend table_;
  std::vector<line> lines_;
};

}  // namespace weir::apps::bench
