// call_writer.h — calls of tools in the notation of one format, without the text around them.
//
// Only for core/grammar. Thread safety: none; one thread builds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/calls/answer_parts.h"
#include "core/grammar/calls/arguments.h"

namespace weir::core::grammar {

class call_writer {
 public:
  call_writer(answer_parts& parts, const call_format& f, std::vector<warning>& warnings, fuel* budget)
      : parts_(parts), rules_(parts.out()), f_(f), arguments_(parts, f, warnings, budget) {}

  // Writes the arguments of these tools. Errors as argument_writer has them.
  result<void> take(const std::vector<tool_definition>& tools);

  // With what calls begin in a text; empty: they are the whole answer.
  std::string_view opening() const { return f_.section_open.empty() ? f_.open : f_.section_open; }
  // The smallest that stands in a text by itself: a section, a list, or one call. `several`: of a section or
  // list, which then may have more than one call.
  part_id group(bool several);
  // One or more calls, and nothing but what the format has between them.
  part_id all(bool several);
  // Calls as `all`, but of the tool of each name alone: made(name, calls) puts them together.
  template <class Make>
  part_id each_tool(Make made) {
    std::vector<part_id> ways;
    const std::vector<alike> whole = std::move(tools_);
    for (const alike& a : whole)
      for (const std::string& name : a.names) {
        tools_ = {{{name}, a.arguments}};
        ways.push_back(made(name, group(false)));
      }
    tools_ = whole;
    return rules_.choice(ways);
  }

 private:
  // Tools whose calls differ in the name alone.
  struct alike {
    std::vector<std::string> names;
    part_id arguments = rules::nothing;
  };

  part_id one();   // a call with its own marks; an item of a list
  part_id body();  // without its marks
  part_id object(const alike& a);
  part_id object_id();
  part_id named(const alike& a);
  regex_id names_of(const alike& a, spelling as);
  regex_id id_language();

  answer_parts& parts_;
  rules& rules_;
  const call_format& f_;
  argument_writer arguments_;
  std::vector<alike> tools_;
};

}  // namespace weir::core::grammar
