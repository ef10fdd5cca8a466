// Any bytes as the body of each POST route: a request or an error, never a crash. The messages of a request
// fit every form that a template may read, and every order that it may take, and fit it still when they are
// put into it again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/text/chat/message_forms.h"
#include "core/text/chat/message_turns.h"
#include "net/protocol/openai.h"

namespace {

// What is in an order that a template takes stays as it is.
void arrange_all(const weir::core::conversation& said) {
  for (unsigned which = 0; which < 16; ++which) {
    weir::core::message_turns turns;
    turns.late_system = turns.late_developer = turns.first_runs = false;
    turns.user_runs = which & 1;
    turns.user_after_result = which & 2;
    turns.one_call = which & 4;
    turns.short_ids = which & 8;
    turns.reasoning = "thinking";
    auto once = said.messages;
    arrange(once, turns);
    auto twice = once;
    if (arrange(twice, turns).reminders != 0 || once != twice) std::abort();
  }
}

void fit_all(const weir::core::conversation& said) {
  using weir::core::message_forms;
  using content = message_forms::content;
  for (const bool as_text : {false, true})
    for (const content form : {content::text, content::parts, content::either}) {
      message_forms forms{.contents = {}, .arguments_as_text = as_text};
      forms.contents.fill(form);
      auto once = said.messages;
      fit(once, forms);
      auto twice = once;
      fit(twice, forms);
      if (once != twice) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::net;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (auto d : {openai::dialect::completion, openai::dialect::chat}) {
    auto parsed = openai::parse(d, body);
    if (!parsed && parsed.error().message.empty()) std::abort();
    if (!parsed) continue;
    if (parsed->ignored.told().size() > ignored_fields::most_names + 1) std::abort();
    const auto* said = std::get_if<weir::core::conversation>(&parsed->request.input);
    if (!said) continue;
    fit_all(*said);
    arrange_all(*said);
  }
  (void)openai::parse_tokenize(body);
  (void)openai::parse_detokenize(body);
  return 0;
}
