// template_files.h — finds the chat templates and the special tokens of a model directory.
//
// Only for core/text: throws refusal (core/text/json_field.h).
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

namespace weir::core {

struct template_files {
  struct source {
    std::string name;  // "default", "tool_use", "rag", …
    std::string text;
  };
  std::vector<source> sources;  // empty: the directory has no template
  std::string origin;           // file of the first source
  boost::json::object tokens;   // spelling of each special token by its name, such as bos_token
};

// Reads `dir`: a directory, or a GGUF file, whose keys contain all of this. In a directory, the first of
// chat_template.jinja, chat_template.json and tokenizer_config.json that has a template counts;
// additional_chat_templates/NAME.jinja adds templates by name. Throws refusal with bad_file.
template_files find_template_files(const std::string& dir);

}  // namespace weir::core
