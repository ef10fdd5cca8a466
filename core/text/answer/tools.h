// tools.h — the tools that a request lets the model call, and how it may call them.
//
// Thread safety: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::core {

struct tool_definition {
  enum class kind : std::uint8_t {
    function,  // a call has arguments, which are a JSON object
    // A call has one input, which is a text. The model is told of a function with one string, `input`.
    custom,
  };
  std::string name;
  std::string parameters;  // JSON Schema of the arguments, as it was sent; empty: any object
  std::string grammar;     // custom: what the input may be; empty: any text
  std::string syntax;      // of `grammar`: "lark" or "regex"
  std::string param;       // the client's name of the schema or grammar, for errors: "tools[3].parameters"
  kind what = kind::function;
  // The arguments follow the schema, also where the model is free to call or not. What cannot be enforced is
  // refused where `strict`, else relaxed with a warning.
  bool strict = false, enforced = false;
};

struct tool_wishes {
  enum class choice : std::uint8_t {
    automatic,  // the model decides
    none,       // no call may be written
    required,   // one or more calls, and no text before them
  };
  std::vector<tool_definition> tools;  // those that may be called; empty: there are no tools
  choice how = choice::automatic;
  bool parallel = true;  // false: at most one call

  bool any() const noexcept { return !tools.empty(); }
};

}  // namespace weir::core
