// target.h — the server that is talked to, as far as a client may know it. Plain data: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::stranger {

struct target {
  std::uint16_t port = 0;         // on 127.0.0.1
  std::vector<std::string> keys;  // none: the server lets everybody in
};

}  // namespace weir::stranger
