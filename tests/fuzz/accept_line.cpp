// A line of `weir accept --batch`.
#include <boost/json.hpp>
#include <cstdint>
#include <string_view>

#include "core/grammar/accept.h"
#include "core/read_json.h"

using namespace weir::core;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const auto parsed = grammar::parse_accept_line(line);
  if (!parsed || !parsed->own || parsed->field != "schema") return 0;
  // A schema is cut out of the line as JSON.
  boost::json::error_code ec;
  boost::json::parse_options how;
  how.max_depth = 300;
  boost::json::parse(parsed->own->text, ec, {}, how);
  if (ec) __builtin_trap();
  return 0;
}
