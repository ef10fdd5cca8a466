#include "core/text/answer/format_text.h"

#include <fmt/format.h>

#include "core/visible.h"

namespace weir::core {
namespace {

// A mark of a template, without the white space around it.
std::string mark_text(std::string_view mark) {
  constexpr std::string_view blank = " \t\n\r";
  const auto begin = mark.find_first_not_of(blank);
  if (begin == mark.npos) return "the beginning";
  return one_line(mark.substr(begin, mark.find_last_not_of(blank) + 1 - begin));
}

}  // namespace

std::string calls_text(const answer_format& f) {
  return std::string(f.has_calls() ? f.calls.name : "no known format; requests with tools are refused");
}

std::string reasoning_text(const answer_format& f) {
  if (!f.reasoning.close.empty())
    return fmt::format("from {} to {}", mark_text(f.reasoning.open), mark_text(f.reasoning.close));
  if (f.messages == envelope::harmony) return "messages to the channel analysis";
  if (f.messages == envelope::recipients) return "messages to the model itself";
  return "no known marks; it is text of the answer";
}

}  // namespace weir::core
