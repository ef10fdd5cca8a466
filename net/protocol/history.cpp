#include "net/protocol/history.h"

#include <algorithm>
#include <optional>

namespace weir::net {
namespace {

using core::bad_param;

const json::value* set_member(const json::object& o, std::string_view name) {
  const auto* v = o.if_contains(name);
  return v && !v->is_null() ? v : nullptr;
}

std::string_view text_in(const json::object& o, std::string_view name) {
  const auto* v = o.if_contains(name);
  return v && v->is_string() ? std::string_view(v->get_string()) : std::string_view();
}

json::object call_of(std::string_view id, const json::value& function) {
  return {{"id", id}, {"type", "function"}, {"function", function}};
}

class moderniser {
 public:
  moderniser(std::string_view field, std::vector<core::grammar::warning>& dropped)
      : field_(field), dropped_(dropped) {}

  core::result<void> take(json::object& m, std::size_t number) {
    const std::string at = fmt::format("{}[{}]", field_, number);
    const std::string role(text_in(m, "role"));
    if (role == "function") result_of_function(m);
    if (role == "tool") leave_out_pictures(m, at);
    if (role != "assistant") return {};
    if (auto read = function_call(m, at, number); !read) return read;
    reasoning_details(m);
    return custom_calls(m, at);
  }

 private:
  // The only call of an assistant's message, in the older member.
  core::result<void> function_call(json::object& m, const std::string& at, std::size_t number) {
    const auto* called = set_member(m, "function_call");
    if (!called) return {};
    if (set_member(m, "tool_calls")) return bad_param(field_, "{} has both tool_calls and function_call", at);
    if (!called->is_object() || text_in(called->get_object(), "name").empty())
      return bad_param(field_, "{}.function_call must be an object with a name", at);
    last_id_ = fmt::format("call_{}", number);
    m["tool_calls"] = json::array{call_of(last_id_, *called)};
    m.stable_erase("function_call");
    return {};
  }

  void result_of_function(json::object& m) const {
    m["role"] = "tool";
    if (!last_id_.empty() && !m.contains("tool_call_id")) m["tool_call_id"] = last_id_;
  }

  core::result<void> custom_calls(json::object& m, const std::string& at) const {
    auto* calls = m.if_contains("tool_calls");
    if (!calls || !calls->is_array()) return {};
    std::size_t i = 0;
    for (json::value& v : calls->get_array()) {
      const std::string place = fmt::format("{}.tool_calls[{}]", at, i++);
      const auto* o = v.if_object();
      const auto* custom = o ? set_member(*o, "custom") : nullptr;
      if (!custom) continue;
      const auto* said = custom->is_object() ? set_member(custom->get_object(), "input") : nullptr;
      const auto name = custom->is_object() ? text_in(custom->get_object(), "name") : std::string_view();
      if (name.empty() || !said || !said->is_string())
        return bad_param(field_, "{}.custom must be an object with a name and a string 'input'", place);
      v = call_of(text_in(*o, "id"), json::object{{"name", name}, {"arguments", {{"input", *said}}}});
    }
    return {};
  }

  // As OpenRouter's clients send it; what is encrypted is not read.
  static void reasoning_details(json::object& m) {
    const auto* details = set_member(m, "reasoning_details");
    if (!details || !details->is_array()) return;
    std::string all;
    for (const json::value& v : details->get_array()) {
      if (!v.is_object()) continue;
      const auto& o = v.get_object();
      std::string_view said = text_in(o, "text");
      if (said.empty()) said = text_in(o, "summary");
      if (!said.empty() && !all.empty()) all += '\n';
      all += said;
    }
    const bool known = !text_in(m, "reasoning_content").empty() || !text_in(m, "reasoning").empty();
    m.stable_erase("reasoning_details");
    if (!known && !all.empty()) m["reasoning_content"] = all;
  }

  void leave_out_pictures(json::object& m, const std::string& at) const {
    auto* content = m.if_contains("content");
    if (!content || !content->is_array()) return;
    auto& parts = content->get_array();
    const auto is_picture = [](const json::value& part) {
      if (!part.is_object()) return false;
      const auto type = text_in(part.get_object(), "type");
      return type == "image_url" || type == "image" || type == "input_image";
    };
    const auto pictures = std::ranges::count_if(parts, is_picture);
    if (pictures == 0) return;
    json::array kept;
    for (json::value& part : parts)
      if (!is_picture(part)) kept.push_back(std::move(part));
    dropped_.push_back(
        {at + ".content",
         fmt::format("{} of its parts are images, which are not read: they are left out", pictures)});
    if (kept.empty())
      *content = "";
    else
      parts = std::move(kept);
  }

  const std::string field_;
  std::vector<core::grammar::warning>& dropped_;
  std::string last_id_;  // of the last function_call
};

}  // namespace

core::result<void> modernise_messages(std::string_view name, json::array& messages,
                                      std::vector<core::grammar::warning>& dropped) {
  moderniser by(name, dropped);
  std::size_t number = 0;
  for (json::value& m : messages) {
    if (auto* o = m.if_object())
      if (auto read = by.take(*o, number); !read) return read;
    ++number;
  }
  return {};
}

}  // namespace weir::net
