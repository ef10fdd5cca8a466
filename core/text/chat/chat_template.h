// chat_template.h — makes a prompt of a conversation, in the form that the model was trained on.
//
// Each model has its own template, a program in the Jinja language (core/text/template/template.h), which
// is given the variables that Hugging Face's transformers gives it. docs/templates.md says which file counts.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/text/answer/format.h"
#include "core/text/chat/conversation.h"
#include "core/text/chat/message_forms.h"
#include "core/text/chat/message_turns.h"
#include "core/text/template/template.h"
#include "core/text/tokenizer/tokenizer.h"

namespace weir::core {

class chat_template {
 public:
  // The template of a model directory; ChatML with `force_chatml`. Where the directory has no template, it is
  // ChatML if the vocabulary of `t` has ChatML's tokens. A template that cannot be used is no error here,
  // since the model still takes raw prompts: fault() says why. Errors: bad_file for a file that cannot be
  // read or is not valid JSON.
  static result<std::shared_ptr<const chat_template>> load(const std::string& dir, const tokenizer& t,
                                                           bool force_chatml);
  static std::shared_ptr<const chat_template> chatml();
  // `tokens`: spelling of the special tokens by their names in a template, such as bos_token. `origin`: see
  // origin().
  static std::shared_ptr<const chat_template> from_source(std::string_view source,
                                                          boost::json::object tokens = {},
                                                          std::string origin = "template");

  // The prompt as text. `now`: local time, for templates that print the date. Errors: the fault; or
  // invalid_param if the template refuses the conversation or fails on it.
  //
  // The messages are put into the order and the forms that the template reads (core/text/chat/message_turns.h
  // and message_forms.h). `notes`, unless null, gets a sentence for each change that a client should know of.
  // A template whose source does not have the word `developer` gets messages of this role as `system`. A
  // reasoning effort goes to a template that has the word; it says nothing to a model that does not reason,
  // and any other template refuses it.
  result<jinja::rendering> render(const conversation& c, std::chrono::local_seconds now,
                                  const jinja::limits& most = {},
                                  std::vector<std::string>* notes = nullptr) const;
  // The same, but the template is given the messages as they are.
  result<jinja::rendering> render_as_sent(const conversation& c, std::chrono::local_seconds now) const;
  // The prompt as ids. Control tokens are recognised in the template's own text, not in what came from the
  // client. The tokenizer adds no tokens of its own, such as BOS: the template writes them.
  result<std::vector<token_id>> encode(const conversation& c, const tokenizer& t,
                                       std::chrono::local_seconds now, const jinja::limits& most = {}) const;

  // The same template with other spellings of special tokens, each by its name, such as bos_token.
  chat_template with_tokens(const boost::json::object& changed) const;

  // How the model writes answers to conversations with tools, or without. A template that cannot be used has
  // no format.
  const answer_format& format(bool with_tools) const;

  const std::string& origin() const noexcept { return origin_; }  // file of the template, or "ChatML"
  // The text of the template for conversations without tools and documents; empty: there is none.
  const std::string& source() const noexcept { return source_; }
  // Why every conversation is refused; nullptr: the template can be used.
  const error* fault() const noexcept { return fault_ ? &*fault_ : nullptr; }

 private:
  struct named {
    std::string name;
    std::shared_ptr<const jinja::program> program;
    bool knows_developer, knows_effort;
    bool reasons;  // its model writes down what it thinks
    message_forms forms;
    message_turns turns;
    answer_format format;
  };
  enum class given { fitted, as_sent };
  result<> check_variables(const conversation& c) const;
  const named* choose(bool tools, bool documents) const;
  result<jinja::rendering> render(const conversation& c, std::chrono::local_seconds now, given how,
                                  const jinja::limits& most, std::vector<std::string>* notes) const;
  result<jinja::rendering> run(const conversation& c, std::chrono::local_seconds now, given how,
                               const jinja::limits& most, std::vector<std::string>* notes) const;
  void add(std::string name, std::string_view source);

  std::vector<named> programs_;
  boost::json::object tokens_;
  std::string origin_, source_;
  std::optional<error> fault_;
};

// The parts of a rendered conversation for tokenizer::encode_parts(). They refer to its text.
std::vector<tokenizer::part> parts_of(const jinja::rendering& made);

}  // namespace weir::core
