// profile.h — a backend that runs and times each operation of another backend, to show where a step's time
// goes.
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

  // The table of the timing backend. REQUIRES: this object outlives every use of the table.
  std::shared_ptr<const kernels::backend> table() const;

  void clear() { lines_.clear(); }

  // The operations since clear(), those with the longest time first. Products with matrices of different
  // shapes are different operations. Each has its calls, µs, share of the time of all operations, and GB/s.
  boost::json::array figures() const;

  // Used by the functions of the table.
  const kernels::backend& inner() const { return *of_; }
  void add(const char* operation, const kernels::matrix* by, double seconds, const kernels::traffic& t);

 private:
  struct line {
    const char* operation;
    std::uint32_t rows = 0, cols = 0;  // of the matrix; 0: the operation has none
    std::uint64_t calls = 0, bytes = 0;
    double seconds = 0;
  };

  std::shared_ptr<const kernels::backend> of_;
  kernels::backend table_;
  std::vector<line> lines_;
};

}  // namespace weir::apps::bench
