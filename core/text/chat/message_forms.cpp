#include "core/text/chat/message_forms.h"

#include <algorithm>
#include <optional>

#include "core/read_json.h"
#include "core/text/chat/template_prober.h"

namespace weir::core {
namespace {

namespace json = boost::json;
using content = message_forms::content;

constexpr std::string_view json_white = " \t\r\n";

// ---- contents

json::array as_parts(std::string_view text) {
  const json::string_view said(text.data(), text.size());
  return json::array{json::object{{"type", "text"}, {"text", said}}};
}

void fit_content(json::value& said, content form) {
  if (said.is_null()) said = json::string();
  if (form == content::text)
    if (auto text = joined_parts(said)) said = std::move(*text);
  if (form != content::parts || !said.is_string()) return;
  json::value list(as_parts(said.get_string()));
  said = std::move(list);
}

// ---- arguments

// `values_left`: how many values and keys the conversation may still have in texts.
void text_to_object(json::value& arguments, std::size_t& values_left) {
  const std::string_view text = arguments.get_string();
  if (text.find_first_not_of(json_white) == text.npos) {
    arguments = json::object();
    return;
  }
  auto read = read_json(text, {.depth = deepest_arguments, .values = values_left});
  if (!read || !read->is_object()) return;
  values_left -= std::min(values_left, values_in(*read));
  arguments = std::move(*read);
}

// As templates write JSON themselves.
void object_to_text(json::value& arguments) {
  static const auto writer = jinja::program::compile("{{ arguments | tojson }}");
  const json::object given{{"arguments", arguments}};
  if (auto made = (*writer)->render({given, {}, {}})) arguments = made->text;
}

void fit_call(json::value& call, bool as_text, std::size_t& values_left) {
  auto* o = call.if_object();
  if (!o) return;
  auto* function = o->if_contains("function");
  auto* holder = function && function->is_object() ? &function->get_object() : o;
  auto* arguments = holder->if_contains("arguments");
  if (!arguments) return;
  if (as_text && arguments->is_object()) object_to_text(*arguments);
  if (!as_text && arguments->is_string()) text_to_object(*arguments, values_left);
}

// ---- what a template reads

// Words that no template has by itself.
constexpr std::string_view said_word = "weirsaid", more_word = "weirmore", key_word = "weirkey",
                           value_word = "weirvalue";

constexpr std::string_view call_probes[] = {
    R"([{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"abcdef123",
      "type":"function","function":{"name":"weir","arguments":{"weirkey":"weirvalue"}}}]},
      {"role":"tool","tool_call_id":"abcdef123","name":"weir","content":"b"}])",
    R"([{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"abcdef123",
      "type":"function","function":{"name":"weir","arguments":{"weirkey":"weirvalue"}}}]}])",
};

struct content_probe {
  std::string_view role;
  std::string_view messages;  // JSON: one content of the role is said_word
  bool tools = false;
};

constexpr content_probe content_probes[] = {
    {"user", R"([{"role":"user","content":"weirsaid"}])"},
    {"user", R"([{"role":"user","content":"weirsaid"}])", true},
    {"user", R"([{"role":"system","content":"a"},{"role":"user","content":"weirsaid"}])"},
    {"user", R"([{"role":"user","content":"weirsaid"},{"role":"assistant","content":"a"},
              {"role":"user","content":"b"}])"},
    {"user", R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},
              {"role":"user","content":"weirsaid"}])"},
    {"system", R"([{"role":"system","content":"weirsaid"},{"role":"user","content":"a"}])"},
    {"system", R"([{"role":"system","content":"weirsaid"},{"role":"user","content":"a"}])", true},
    {"system", R"([{"role":"user","content":"a"},{"role":"system","content":"weirsaid"},
                {"role":"user","content":"a"}])"},
    {"developer", R"([{"role":"developer","content":"weirsaid"},{"role":"user","content":"a"}])"},
    {"developer", R"([{"role":"developer","content":"weirsaid"},{"role":"user","content":"a"}])", true},
    {"assistant", R"([{"role":"user","content":"a"},{"role":"assistant","content":"weirsaid"}])"},
    {"assistant", R"([{"role":"user","content":"a"},{"role":"assistant","content":"weirsaid"},
                   {"role":"user","content":"b"}])"},
    {"assistant", R"([{"role":"user","content":"a"},{"role":"assistant","content":"weirsaid",
      "tool_calls":[{"id":"abcdef123","type":"function","function":{"name":"weir",
      "arguments":{"weirkey":"weirvalue"}}}]},
      {"role":"tool","tool_call_id":"abcdef123","name":"weir","content":"b"}])",
     true},
    {"tool",
     R"([{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"abcdef123",
      "type":"function","function":{"name":"weir","arguments":{"weirkey":"weirvalue"}}}]},
      {"role":"tool","tool_call_id":"abcdef123","name":"weir","content":"weirsaid"}])",
     true},
    {"tool",
     R"([{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"abcdef123",
      "type":"function","function":{"name":"weir","arguments":{"weirkey":"weirvalue"}}}]},
      {"role":"tool","tool_call_id":"abcdef123","name":"weir","content":"weirsaid"},
      {"role":"assistant","content":"b"},{"role":"user","content":"c"}])"},
};

bool has(std::string_view text, std::string_view word) { return text.find(word) != text.npos; }

std::string without_white(std::string text) {
  std::erase_if(text, [](char c) { return json_white.find(c) != json_white.npos; });
  return text;
}

bool reads_objects(std::string_view prompt) {
  const bool quoted_by_python = has(prompt, fmt::format("{{'{}':", key_word));
  return has(prompt, key_word) && has(prompt, value_word) && !quoted_by_python;
}

// True: texts stand in the prompt as they are, and objects do not.
bool wants_texts(const template_prober& p) {
  const std::string whole = fmt::format(R"({{"{}":"{}"}})", key_word, value_word);
  for (const std::string_view probe : call_probes) {
    json::array messages = messages_of(probe);
    if (reads_objects(without_white(p.prompt_of(messages, true)))) return false;
    auto& call = messages[1].at("tool_calls").at(0);
    call.at("function").as_object()["arguments"] = whole;
    if (has(without_white(p.prompt_of(std::move(messages), true)), whole)) return true;
  }
  return false;
}

// What the probes of a role have shown.
struct evidence {
  bool text_read = false, parts_read = false, same = true;

  // `of_two`: the prompt of a second part behind the same part, which some templates leave out.
  void add(std::string_view of_text, std::string_view of_parts, std::string_view of_two) {
    const bool text = has(of_text, said_word), parts = has(of_parts, said_word);
    text_read |= text;
    parts_read |= parts;
    if (text) same &= of_text == of_parts && has(of_two, said_word) && has(of_two, more_word);
  }
  content verdict() const {
    if (!text_read) return parts_read ? content::parts : content::text;
    return same ? content::either : content::text;
  }
};

content form_of(std::string_view role, const template_prober& p, const message_forms& so_far) {
  evidence seen;
  for (const content_probe& probe : content_probes) {
    if (probe.role != role) continue;
    json::array messages = messages_of(probe.messages);
    fit(messages, so_far);
    const auto with_parts = [&](const json::array& parts) {
      json::array changed = messages;
      for (json::value& m : changed)
        if (json::value& said = m.at("content"); said.get_string() == said_word) said = parts;
      return p.prompt_of(std::move(changed), probe.tools);
    };
    const json::array one = as_parts(said_word);
    json::array two = one;
    two.push_back(as_parts(more_word).front());
    seen.add(p.prompt_of(messages, probe.tools), with_parts(one), with_parts(two));
  }
  return seen.verdict();
}

}  // namespace

std::optional<json::string> joined_parts(const json::value& said) {
  const auto* parts = said.if_array();
  if (!parts) return std::nullopt;
  json::string text;
  for (const json::value& part : *parts) {
    const auto* o = part.if_object();
    const auto* piece = o ? o->if_contains("text") : nullptr;
    if (!piece || !piece->is_string()) return std::nullopt;
    if (&part != parts->data()) text += '\n';
    text += piece->get_string();
  }
  return text;
}

content message_forms::of(std::string_view role) const noexcept {
  const auto at = std::ranges::find(roles, role);
  return at == roles.end() ? content::text : contents[static_cast<std::size_t>(at - roles.begin())];
}

message_forms forms_of(const jinja::program& p, const json::object& tokens) {
  const template_prober by(p, tokens);
  message_forms calls, all;
  calls.arguments_as_text = all.arguments_as_text = wants_texts(by);
  for (std::size_t i = 0; i < message_forms::roles.size(); ++i)
    all.contents[i] = form_of(message_forms::roles[i], by, calls);
  return all;
}

namespace {

bool is_empty(const json::value& content) {
  return content.is_null() || (content.is_string() && content.get_string().empty()) ||
         (content.is_array() && content.get_array().empty());
}

// A message's content becomes a message in front of its calls. `empty`: the content beside the calls.
void part_contents_from_calls(json::array& messages, const json::value& empty) {
  json::array all = std::exchange(messages, {});
  for (json::value& m : all) {
    auto* o = m.if_object();
    const auto* calls = o ? o->if_contains("tool_calls") : nullptr;
    if (calls && calls->is_array() && !calls->get_array().empty()) {
      json::value content = std::exchange((*o)["content"], empty);
      if (!is_empty(content))
        messages.push_back(json::object{{"role", "assistant"}, {"content", std::move(content)}});
    }
    messages.push_back(std::move(m));
  }
}

}  // namespace

void fit(json::array& messages, const message_forms& forms) {
  std::size_t values_left = most_argument_values;
  for (json::value& m : messages) {
    auto* o = m.if_object();
    if (!o) continue;
    const auto* role = o->if_contains("role");
    const bool named = role && role->is_string();
    fit_content((*o)["content"], forms.of(named ? std::string_view(role->get_string()) : std::string_view()));
    auto* calls = o->if_contains("tool_calls");
    if (!calls || !calls->is_array()) continue;
    for (json::value& call : calls->get_array()) fit_call(call, forms.arguments_as_text, values_left);
  }
  if (!forms.calls_alone) return;
  part_contents_from_calls(messages, forms.null_beside_calls ? json::value() : json::value(""));
}

}  // namespace weir::core
