// Whatever a simulated device's spec says: a spec within its ranges, or an error that says why not.
#include <cstdint>
#include <cstdlib>

#include "core/model/sim.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto spec = weir::core::parse_sim_spec({reinterpret_cast<const char*>(data), size});
  if (!spec) {
    if (spec.error().message.empty()) std::abort();
    return 0;
  }
  const auto m = weir::core::make_sim_model(*spec);
  const weir::core::time_point now(std::chrono::seconds(5));
  if (m->due({.position = 8, .rows = 1, .prompt_tokens = 8, .last = now}) < now) std::abort();
  return 0;
}
