// find_format.h — finds out from a model's chat template how the model writes calls and reasoning.
//
// The template renders short conversations with words that are known again in the prompt. A call format
// counts if its reader finds in the rendered text exactly the calls that were rendered. Reasoning stands
// between the marks that the template writes around it.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>

#include "core/text/answer/format.h"
#include "core/text/template/template.h"

namespace weir::core {

// `source`: the text of the template. `tokens`: spelling of the special tokens by their names.
answer_format find_format(const jinja::program& p, std::string_view source,
                          const boost::json::object& tokens);

// Whether a prompt ends inside reasoning: the last mark in the template's own text behind the last text of a
// client opens it.
bool ends_in_reasoning(const jinja::rendering& prompt, const answer_format& f);

}  // namespace weir::core
