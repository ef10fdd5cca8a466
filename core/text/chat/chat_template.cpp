#include "core/text/chat/chat_template.h"

#include <algorithm>

#include "core/model/load/gguf_header.h"
#include "core/shortened.h"
#include "core/text/answer/find_format.h"
#include "core/text/chat/final_message.h"
#include "core/text/chat/template_files.h"
#include "core/text/json_field.h"

namespace weir::core {
namespace {

namespace json = boost::json;

// The text of docs/chatml.jinja.
constexpr std::string_view chatml_source =
    R"({% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + )"
    R"('<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";

bool has_chatml_tokens(const tokenizer& t) { return t.id_of("<|im_start|>") && t.id_of("<|im_end|>"); }

error no_template(const std::string& dir) {
  return make_error(errc::not_supported,
                    "messages cannot be taken: {} has no chat template, and its vocabulary has no ChatML "
                    "tokens. Send the prompt as text{}",
                    dir,
                    is_gguf_path(dir) ? "" : ", or put the model's chat_template.jinja into that directory");
}

// The variables that a template is given, as transformers names them.
json::object variables_of(const conversation& c) {
  json::object out = c.variables;
  out["messages"] = c.messages;
  out["tools"] = c.tools;
  out["documents"] = c.documents;
  out["add_generation_prompt"] = c.add_generation_prompt;
  return out;
}

std::string reminder_note(std::size_t count) {
  return fmt::format(
      "the model's chat template has no place for {} behind other turns: {} given as a user's turn, between "
      "<system-reminder> and </system-reminder>",
      count == 1 ? "a message of the system" : fmt::format("{} messages of the system", count),
      count == 1 ? "it is" : "each is");
}

void developers_to_system(json::array& messages) {
  for (json::value& m : messages) {
    auto* o = m.if_object();
    json::value* role = o ? o->if_contains("role") : nullptr;
    if (role && *role == "developer") *role = "system";
  }
}

}  // namespace

std::shared_ptr<const chat_template> chat_template::chatml() {
  static const auto shared = from_source(chatml_source, {}, "ChatML");
  return shared;
}

std::shared_ptr<const chat_template> chat_template::from_source(std::string_view source, json::object tokens,
                                                                std::string origin) {
  auto made = std::make_shared<chat_template>();
  made->tokens_ = std::move(tokens);
  made->origin_ = std::move(origin);
  made->add("default", source);
  return made;
}

result<std::shared_ptr<const chat_template>> chat_template::load(const std::string& dir, const tokenizer& t,
                                                                 bool force_chatml) {
  if (force_chatml) return chatml();
  try {
    template_files files = find_template_files(dir);
    if (files.sources.empty() && has_chatml_tokens(t)) return chatml();
    auto made = std::make_shared<chat_template>();
    made->tokens_ = std::move(files.tokens);
    made->origin_ = std::move(files.origin);
    if (files.sources.empty()) made->fault_ = no_template(dir);
    for (const auto& [name, text] : files.sources) made->add(name, text);
    return made;
  } catch (const refusal& r) {
    return r.why;
  }
}

void chat_template::add(std::string name, std::string_view source) {
  if (name == "default") source_ = source;
  auto program = jinja::program::compile(source);
  if (program) {
    const auto has = [&](std::string_view word) { return source.find(word) != source.npos; };
    message_forms forms = forms_of(**program, tokens_);
    const answer_format format = find_format(**program, source, tokens_);
    forms.calls_alone = format.calls_alone;
    forms.null_beside_calls = format.null_beside_calls;
    message_turns turns = turns_of(**program, source, tokens_, forms);
    programs_.push_back({std::move(name), std::move(*program), has("developer"), has("reasoning_effort"),
                         has("think") || has("reasoning"), forms, std::move(turns), format});
  } else if (!fault_) {
    fault_ = make_error(errc::not_supported,
                        "messages cannot be taken: the model's chat template ({}) does not compile: {}. Send "
                        "the prompt as text",
                        origin_, program.error().message);
  }
}

namespace {

bool have_calls(const json::array& messages) {
  return std::ranges::any_of(messages, [](const json::value& m) {
    const auto* o = m.if_object();
    const auto* calls = o ? o->if_contains("tool_calls") : nullptr;
    return calls && calls->is_array() && !calls->get_array().empty();
  });
}

}  // namespace

// The template `tool_use` serves conversations with tools, `rag` those with documents, `default` all others.
const chat_template::named* chat_template::choose(bool tools, bool documents) const {
  const auto find = [&](std::string_view name) -> const named* {
    const auto at = std::ranges::find(programs_, name, &named::name);
    return at == programs_.end() ? nullptr : &*at;
  };
  const named* chosen = nullptr;
  if (tools) chosen = find("tool_use");
  if (!chosen && documents) chosen = find("rag");
  return chosen ? chosen : find("default");
}

result<jinja::rendering> chat_template::run(const conversation& c, std::chrono::local_seconds now, given how,
                                            const jinja::limits& most,
                                            std::vector<std::string>* notes) const {
  const named* chosen = choose(!c.tools.is_null(), !c.documents.is_null());
  if (!chosen) {
    std::string names;
    for (const named& n : programs_) names += (names.empty() ? "" : ", ") + n.name;
    return make_error(errc::not_supported,
                      "the model's chat templates ({}) have none for this conversation: 'default' is missing",
                      names);
  }
  if (c.reasoning_effort && chosen->reasons && !chosen->knows_effort)
    return bad_param("reasoning_effort",
                     "reasoning_effort is not supported yet by this model's chat template");
  json::object variables = variables_of(c);
  if (c.reasoning_effort && !c.variables.contains("reasoning_effort"))
    variables["reasoning_effort"] = *c.reasoning_effort;
  auto& messages = variables["messages"].as_array();
  if (how == given::fitted) {
    if (!chosen->knows_developer) developers_to_system(messages);
    const auto changed = arrange(messages, chosen->turns);
    if (notes && changed.reminders > 0) notes->push_back(reminder_note(changed.reminders));
    fit(messages, chosen->forms);
    if (notes && !chosen->format.writes_calls && have_calls(messages))
      notes->push_back("the model's chat template leaves out the calls of earlier messages");
  }
  auto made = chosen->program->render({variables, tokens_, now}, most);
  if (made && c.continue_final_message)
    if (auto cut = end_at_final_message(messages, *made); !cut) return cut.error();
  return made;
}

const answer_format& chat_template::format(bool with_tools) const {
  static const answer_format none;
  const named* chosen = choose(with_tools, false);
  return chosen ? chosen->format : none;
}

// A client must not set the variables that weir itself sets.
result<> chat_template::check_variables(const conversation& c) const {
  static const json::object own = variables_of({});
  for (const auto& [name, value] : c.variables)
    if (own.contains(name) || tokens_.contains(name))
      return bad_param("chat_template_kwargs", "chat_template_kwargs: {} cannot be set there",
                       shortened(name));
  return {};
}

chat_template chat_template::with_tokens(const json::object& changed) const {
  chat_template out = *this;
  for (const auto& [name, spelling] : changed) out.tokens_[name] = spelling;
  return out;
}

result<jinja::rendering> chat_template::render(const conversation& c, std::chrono::local_seconds now,
                                               given how, const jinja::limits& most,
                                               std::vector<std::string>* notes) const {
  if (fault_) return *fault_;
  if (auto fine = check_variables(c); !fine) return fine.error();
  auto made = run(c, now, how, most, notes);
  if (made || made.error().code != errc::bad_file) return made;
  error why = made.error();
  why.code = errc::invalid_param;  // a template is fit for some conversations alone
  return why;
}

result<jinja::rendering> chat_template::render(const conversation& c, std::chrono::local_seconds now,
                                               const jinja::limits& most,
                                               std::vector<std::string>* notes) const {
  return render(c, now, given::fitted, most, notes);
}

result<jinja::rendering> chat_template::render_as_sent(const conversation& c,
                                                       std::chrono::local_seconds now) const {
  return render(c, now, given::as_sent, {}, nullptr);
}

result<std::vector<token_id>> chat_template::encode(const conversation& c, const tokenizer& t,
                                                    std::chrono::local_seconds now,
                                                    const jinja::limits& most) const {
  const auto made = render(c, now, most);
  if (!made) return made.error();
  return t.encode_parts(parts_of(*made), most.at);
}

std::vector<tokenizer::part> parts_of(const jinja::rendering& made) {
  const std::string_view text = made.text;
  std::vector<tokenizer::part> parts;
  std::size_t at = 0;
  for (const jinja::span& s : made.content) {
    if (at < s.begin) parts.push_back({text.substr(at, s.begin - at), true});
    parts.push_back({text.substr(s.begin, s.end - s.begin), false});
    at = s.end;
  }
  if (at < text.size()) parts.push_back({text.substr(at), true});
  return parts;
}

}  // namespace weir::core
