#include "actors/kept_prompt.h"

#include <algorithm>
#include <string_view>
#include <variant>

namespace weir::actors {
namespace {

using core::jinja::rendering;
namespace json = boost::json;

bool is_system(const json::value& message) {
  const json::value& role = message.as_object().at("role");
  return role == "system" || role == "developer";
}

// The leading messages of system or developer, without what follows; no message where there is none.
core::conversation beginning_of(const core::conversation& c) {
  core::conversation out = c;
  const auto end = std::ranges::find_if_not(out.messages, is_system);
  out.messages.erase(end, out.messages.end());
  out.add_generation_prompt = out.continue_final_message = false;
  return out;
}

// The first `bytes` bytes.
rendering cut(const rendering& made, std::size_t bytes) {
  rendering out{made.text.substr(0, bytes), {}};
  for (const auto& s : made.content)
    if (s.begin < bytes) out.content.push_back({s.begin, std::min(s.end, bytes)});
  return out;
}

// Where a text that a message has stands at first in the rendering: one past its last byte. 0: nowhere.
std::size_t end_of_text(const rendering& made, const json::value& message) {
  const json::value* content = message.as_object().if_contains("content");
  if (!content || !content->is_string()) return 0;
  std::string_view text = content->get_string();
  constexpr std::string_view blank = " \t\r\n";  // templates trim
  text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
  text = text.substr(0, text.find_last_not_of(blank) + 1);
  const std::size_t at = text.empty() ? made.text.npos : made.text.find(text);
  return at == made.text.npos ? 0 : at + text.size();
}

// Bytes of the rendering that are its beginning. A template that shows the beginning of a conversation alone
// says where it ends. Others refuse that, or move the text into the user's turn: it ends with the text there.
std::size_t bytes_of(const core::conversation& beginning, const rendering& made, const served_model& m,
                     const core::jinja::limits& most, std::chrono::local_seconds now) {
  const auto alone = m.chat->render(beginning, now, most);
  if (alone && made.text.starts_with(alone->text)) return alone->text.size();
  return end_of_text(made, beginning.messages.back());
}

}  // namespace

std::uint32_t kept_tokens(const request& r, const rendering* made, std::span<const core::token_id> prompt,
                          const served_model& m, const core::jinja::limits& most,
                          std::chrono::local_seconds now) {
  const std::uint32_t bos = !prompt.empty() && prompt.front() == m.tokenizer->bos() ? 1 : 0;
  if (!made) return bos;
  const auto beginning = beginning_of(std::get<core::conversation>(r.input));
  if (beginning.messages.empty()) return bos;
  const rendering kept = cut(*made, bytes_of(beginning, *made, m, most, now));
  const auto ids = m.tokenizer->encode_parts(core::parts_of(kept), most.at);
  const auto same = std::ranges::mismatch(ids, prompt).in1 - ids.begin();
  return std::max(bos, static_cast<std::uint32_t>(same));
}

}  // namespace weir::actors
