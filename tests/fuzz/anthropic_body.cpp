// Any bytes as the body of Anthropic's routes: a request or an error, never a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "net/protocol/anthropic.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::net;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (auto to : {anthropic::route::messages, anthropic::route::count_tokens}) {
    const auto parsed = anthropic::parse(to, body);
    if (!parsed && parsed.error().message.empty()) std::abort();
    if (!parsed) continue;
    if (std::get<weir::core::conversation>(parsed->request.input).messages.empty()) std::abort();
    if (to == anthropic::route::messages && !parsed->request.max_tokens) std::abort();
  }
  return 0;
}
