#include "core/fleet/resume_part.h"

#include "core/fleet/bytes.h"
#include "core/fleet/constraint_bytes.h"

namespace weir::core::fleet {
namespace {

constexpr std::size_t most_warnings = 4096, most_choices = 4096;

void tools_field(byte_writer& io, const std::vector<tool_definition>& all) { write_tools(io, all); }
void tools_field(byte_reader& io, std::vector<tool_definition>& all) { read_tools(io, all); }

template <class IO, class T>
void fields(IO& io, T& p) {
  io(p.user);
  for (auto* flag : {&p.skip_special, &p.shows_prompt, &p.parted, &p.separate_reasoning,
                     &p.begins_in_reasoning, &p.calls_only})
    io(*flag);
  tools_field(io, p.tools);
  io.list(p.warnings, most_warnings, [&](auto& w) {
    io(w.where);
    io(w.message);
  });
  io.list(p.choices, most_choices, [&](auto& id) { io(id); });
  io(p.client);
}

}  // namespace

std::string bytes_of(const resume_part& p) {
  std::string out;
  byte_writer to(out);
  fields(to, p);
  return out;
}

std::optional<resume_part> read_resume(std::string_view bytes) {
  byte_reader from(bytes);
  resume_part p;
  fields(from, p);
  if (from.failed()) return std::nullopt;
  return p;
}

}  // namespace weir::core::fleet
