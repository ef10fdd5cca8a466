// lexer.h — cuts the source of a template into tokens.
//
// White space is treated as Python's Jinja does with trim_blocks and lstrip_blocks. The newline behind a
// block or comment is removed, and so is the white space between the start of a line and a block or comment;
// `-` removes all white space on its side, `+` keeps what would be removed.
//
// Thread safety: pure function; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::core::jinja {

struct token {
  enum class kind {
    data,            // text between tags
    block_begin,     // {%
    block_end,       // %}
    variable_begin,  // {{
    variable_end,    // }}
    name,
    string,   // `text` is what the literal stands for
    integer,  // `text` as it is spelled, without _
    floating,
    op,  // one of + - * / // % ** ~ ( ) [ ] { } == != < <= > >= = . : , |
    end
  };
  kind what = kind::end;
  std::string text;
  std::uint32_t line = 0;
};

// The last token is `end`. Throws failure for a source that is no template.
std::vector<token> cut_into_tokens(std::string_view source);

}  // namespace weir::core::jinja
