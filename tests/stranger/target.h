// target.h — the server that is talked to, as far as a client may know it. Plain data: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::stranger {

struct target {
  std::uint16_t port = 0;         // on 127.0.0.1
  std::vector<std::string> keys;  // none: the server lets everybody in
  std::string admin_key;          // where there are keys
  std::string bound_key;          // where there are keys: may use `model` alone; one of `keys`
  std::string model = "sim";      // that the server serves all the time
  std::string guest_source;       // of models that can be loaded beside it; empty: none can
  std::string slow_source;        // of models whose load and wake take a while; empty: there are none
};

}  // namespace weir::stranger
