#include "core/text/chat/dialogue.h"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "core/read_json.h"

namespace weir::core {
namespace {

namespace json = boost::json;

bool has_role(const json::value& m, std::string_view role) {
  return std::string_view(m.at("role").as_string()) == role;
}

bool is_question(const json::value& m) { return has_role(m, "user"); }

result<> check(const json::value& m, std::size_t at) {
  const auto* o = m.if_object();
  for (const char* name : {"role", "content"}) {
    const auto* v = o ? o->if_contains(name) : nullptr;
    if (!v || !v->is_string()) return bad_param(name, "message {} has no text '{}'", at, name);
  }
  return {};
}

}  // namespace

dialogue::dialogue(std::optional<std::string> system) {
  if (system) messages_.push_back(json::object{{"role", "system"}, {"content", *system}});
}

void dialogue::ask(std::string_view text) {
  messages_.push_back(json::object{{"role", "user"}, {"content", text}});
}

void dialogue::answer(std::string_view text, std::string_view thinking) {
  json::object m{{"role", "assistant"}, {"content", text}};
  if (!thinking.empty()) m["reasoning_content"] = thinking;
  messages_.push_back(std::move(m));
}

void dialogue::take_back() { messages_.pop_back(); }

bool dialogue::drop_oldest() {
  const auto oldest = std::ranges::find_if(messages_, is_question);
  if (oldest == messages_.end()) return false;
  const auto next = std::find_if(oldest + 1, messages_.end(), is_question);
  if (next == messages_.end()) return false;
  messages_.erase(oldest, next);
  return true;
}

void dialogue::forget() {
  const bool keeps = !messages_.empty() && has_role(messages_.front(), "system");
  messages_.erase(messages_.begin() + (keeps ? 1 : 0), messages_.end());
}

json::array dialogue::messages() const {
  json::array out = messages_;
  for (json::value& m : out) m.get_object().erase("reasoning_content");
  return out;
}

std::size_t dialogue::turns() const {
  return static_cast<std::size_t>(std::ranges::count_if(messages_, is_question));
}

std::string dialogue::saved() const {
  std::string out = "[";
  for (const json::value& m : messages_) out += (out.size() > 1 ? ",\n " : "\n ") + json::serialize(m);
  return out + "\n]\n";
}

result<> dialogue::load(std::string_view file) {
  auto value = read_json(file, {});
  if (!value) return value.error();
  const auto* list = value->if_array();
  if (!list) return bad_param("", "the file is no list of messages");
  for (std::size_t i = 0; i < list->size(); ++i)
    if (auto fine = check((*list)[i], i); !fine) return fine;
  messages_ = *list;
  return {};
}

}  // namespace weir::core
