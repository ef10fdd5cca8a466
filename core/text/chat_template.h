// chat_template.h — makes a prompt of chat messages, in the form that the model was trained on.
//
// The only template that is supported is ChatML (docs/chatml.jinja).
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/text/tokenizer.h"

namespace weir::core {

struct message {
  std::string role;  // system, user, assistant, …
  std::string content;
};

class chat_template {
 public:
  // The template of a model directory: from chat_template.jinja, or else from tokenizer_config.json. ChatML
  // if the directory has none, or if `force_chatml`. Errors: bad_file for a file that cannot be read or is
  // not valid; not_supported for a list of templates without a default one.
  static result<std::shared_ptr<const chat_template>> load(const std::string& dir, bool force_chatml);
  static std::shared_ptr<const chat_template> chatml();
  // `source`: any text. Unless it equals docs/chatml.jinja byte for byte, encode() and render() return
  // not_supported.
  static std::shared_ptr<const chat_template> from_source(std::string source);

  // The prompt as ids. Control tokens are recognised in the template's own text, not in roles and contents.
  result<std::vector<token_id>> encode(const std::vector<message>& messages, const tokenizer& t) const;
  // The prompt as text.
  result<std::string> render(const std::vector<message>& messages) const;

 private:
  explicit chat_template(std::optional<std::string> unsupported) : unsupported_(std::move(unsupported)) {}
  result<> check() const;

  std::optional<std::string> unsupported_;  // source of a template that is not ChatML
};

}  // namespace weir::core
