// Any bytes as the body of each POST route: a request or an error, never a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "net/protocol/openai.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::net;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (auto d : {openai::dialect::completion, openai::dialect::chat}) {
    auto parsed = openai::parse(d, body);
    if (!parsed && parsed.error().message.empty()) std::abort();
  }
  (void)openai::parse_tokenize(body);
  (void)openai::parse_detokenize(body);
  return 0;
}
