// Any bytes as a file of a preset: fields that a request may have, or an error that says something.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "actors/make_job.h"
#include "net/preset_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto fields = weir::net::read_preset(text);
  if (!fields && fields.error().message.empty()) std::abort();
  if (fields && !weir::actors::check_sampling(*fields)) std::abort();
  return 0;
}
