// A trace is requests in order from zero on, or an error that says which line.
#include <cstdint>
#include <cstdlib>

#include "net/load/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto t = weir::load::parse_trace({reinterpret_cast<const char*>(data), size});
  if (!t) {
    if (t.error().message.empty()) std::abort();
    return 0;
  }
  double last = 0;
  for (const auto& r : t->requests) {
    if (!(r.at_s >= last) || r.in < 1 || r.out < 1) std::abort();
    last = r.at_s;
  }
  return 0;
}
