// A chat template and its variables: the first line that is "---" parts the source from JSON.
#include <cstdint>
#include <string_view>

#include "core/read_json.h"
#include "core/text/template/template.h"

using namespace weir::core;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find("\n---\n");
  const auto program = jinja::program::compile(input.substr(0, cut));
  if (!program) return 0;
  boost::json::object given;
  if (cut != input.npos)
    if (auto v = read_json(input.substr(cut + 5), {.depth = 64, .values = 10'000}); v && v->is_object())
      given = std::move(v->get_object());
  const boost::json::object trusted{{"bos_token", "<s>"}};
  const jinja::limits most{.steps = 20'000, .depth = 300, .memory_bytes = 8 << 20, .output_bytes = 1 << 20};
  const auto made =
      (*program)->render({given, trusted, std::chrono::local_seconds(std::chrono::hours(9))}, most);
  if (!made) return 0;
  // What came from the client lies inside the text, in order.
  std::size_t at = 0;
  for (const auto& s : made->content) {
    if (s.begin < at || s.begin >= s.end || s.end > made->text.size()) __builtin_trap();
    at = s.end;
  }
  return 0;
}
