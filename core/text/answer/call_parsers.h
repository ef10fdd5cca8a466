// call_parsers.h — parsers of calls, one for each kind of format (format.h).
//
// A parser begins behind `open` and ends behind `close`. It gives the call as soon as its name is known, then
// its arguments while they come. It returns false where the text leaves the format; reading::call_begun()
// then says whether a call had begun, which stays without an end. Nothing is decided before a call has begun.
// A `close` that is missing is no fault.
//
// Only for core/text/answer. Thread safety: none; one owner.
#pragma once

#include <optional>
#include <string>

#include "core/text/answer/json_scan.h"
#include "core/text/answer/reading.h"

namespace weir::core {

class call_parsers {
 public:
  explicit call_parsers(reading& in);

  // One call, or the calls of one list.
  parsing call();
  // Calls without marks: the whole answer is one object, or several. Gives nothing before the answer has
  // ended, unless the answer is known to consist of calls.
  parsing bare_calls();
  // All calls of a section, and its end.
  parsing section();
  // Arguments alone: one JSON object.
  parsing arguments();

 private:
  parsing object();
  parsing object_list();
  parsing object_member(std::string& name, std::string& id, bool& has_arguments);
  parsing object_value(bool give);
  parsing named();
  parsing tagged();
  parsing tag_key(std::string& key, json_types& wanted);
  parsing text_value(std::string_view close, bool lines);
  parsing typed_value(std::string_view close, bool lines, json_types wanted);
  parsing pythonic();
  parsing python_call();
  parsing gemma();
  parsing gemma_value();
  // Text up to the comma or bracket that ends a value.
  parsing value_text(std::string_view closing, std::string& out);
  // A name of letters, digits and what else names have, up to another character.
  parsing word(std::string& out);
  parsing waits_for_text();  // false: nothing follows
  void give_key(std::string_view key);
  parsing until(std::string_view spelling, std::string_view forbidden, std::string& out);
  parsing spelling(std::string_view s);
  void begin(const std::string& name, const std::string& id);

  reading& in_;
  const call_format& f_;
  std::string section_close_, open_, close_, id_end_, id_open_, middle_, name_end_, key_open_, key_end_,
      value_close_, quote_, between_;
  bool has_members_ = false;  // of the arguments that are written here
};

}  // namespace weir::core
