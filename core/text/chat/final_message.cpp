#include "core/text/chat/final_message.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace weir::core {
namespace {

namespace json = boost::json;

constexpr const char* white = " \t\n\r\f\v";

std::string_view without_start(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(white), text.size()));
}

std::string_view stripped(std::string_view text) {
  text = without_start(text);
  return text.substr(0, text.find_last_not_of(white) + 1);
}

// The content of the last message, or the last of its parts.
std::string_view final_text(const json::array& messages) {
  const json::object* last = messages.empty() ? nullptr : messages.back().if_object();
  const json::value* content = last ? last->if_contains("content") : nullptr;
  if (content && content->is_array() && !content->get_array().empty()) {
    const auto* part = content->get_array().back().if_object();
    content = part ? part->if_contains("text") : nullptr;
  }
  return content && content->is_string() ? std::string_view(content->get_string()) : std::string_view();
}

// The last place of `text` in what came from the client; npos: none.
std::size_t last_place(const jinja::rendering& made, std::string_view text) {
  for (std::size_t at = made.text.rfind(text); at != std::string::npos; at = made.text.rfind(text, at - 1)) {
    if (std::ranges::any_of(made.content, [&](const jinja::span& s) { return s.begin <= at && at < s.end; }))
      return at;
    if (at == 0) break;
  }
  return std::string::npos;
}

}  // namespace

result<> end_at_final_message(const json::array& messages, jinja::rendering& made) {
  const std::string_view whole = final_text(messages), core = stripped(whole);
  if (core.empty())
    return bad_param("continue_final_message",
                     "continue_final_message: the last message has no text to go on "
                     "with");
  const std::size_t at = last_place(made, core);
  if (at == std::string::npos)
    return bad_param(
        "continue_final_message",
        "continue_final_message: the model's chat template does not write the last message as it is");
  const std::string_view open = without_start(whole);
  const bool kept = std::string_view(made.text).substr(at, open.size()) == open;
  made.text.resize(at + (kept ? open.size() : core.size()));
  std::erase_if(made.content, [&](const jinja::span& s) { return s.begin >= made.text.size(); });
  if (!made.content.empty()) made.content.back().end = std::min(made.content.back().end, made.text.size());
  return {};
}

}  // namespace weir::core
