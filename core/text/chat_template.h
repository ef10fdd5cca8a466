// chat_template.h — messages to the prompt a model was trained on.
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

// Immutable once built: any thread.
class chat_template {
 public:
  // The template of a model directory: ChatML where it has none or has it byte for byte (docs/chatml.jinja);
  // any other is kept, and refused by name when messages come. `force_chatml`: ChatML whatever the model
  // says.
  static result<std::shared_ptr<const chat_template>> load(const std::string& dir, bool force_chatml);
  static std::shared_ptr<const chat_template> chatml();
  // REQUIRES nothing of `source`: the text of a chat_template field.
  static std::shared_ptr<const chat_template> from_source(std::string source);

  // The prompt's ids: control tokens of the template are parsed, those inside messages' text are not.
  result<std::vector<token_id>> encode(const std::vector<message>& messages, const tokenizer& t) const;
  // The same as text.
  result<std::string> render(const std::vector<message>& messages) const;

 private:
  explicit chat_template(std::optional<std::string> unsupported) : unsupported_(std::move(unsupported)) {}
  result<> check() const;

  std::optional<std::string> unsupported_;  // source of a template that is not ChatML
};

}  // namespace weir::core
