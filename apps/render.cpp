#include <unistd.h>
#include <CLI/CLI.hpp>

#include <boost/json.hpp>
#include <fstream>
#include <iostream>
#include <memory>

#include "actors/make_job.h"
#include "apps/answer.h"
#include "apps/commands.h"
#include "apps/engine_options.h"
#include "apps/printable.h"
#include "core/read_json.h"
#include "core/text/answer/format_text.h"
#include "core/text/chat/chat_template.h"
#include "net/protocol/request_fields.h"
#include "net/protocol/tools.h"

namespace weir::apps {
namespace {

namespace json = boost::json;
using core::result;

constexpr core::json_bounds most_json = {.depth = 256, .values = 1 << 22};

struct render_options {
  std::string model, source, batch, tools;
  bool ids = false, chatml = false, as_sent = false;
};

// What a conversation is rendered with. The tokenizer is null with --template.
struct renderer {
  std::shared_ptr<const core::chat_template> chat;
  std::shared_ptr<const core::tokenizer> tokenizer;
  bool as_sent = false;
  json::value tools = nullptr;  // of conversations without tools of their own; null: none
};

// One conversation of the input, with what only `weir render` lets its user set.
struct rendering_request {
  core::conversation said;
  json::object tokens;  // bos_token and its like
  std::chrono::local_seconds now;
  std::vector<core::grammar::warning> notes;  // of what is left out
};

// Parses 2025-07-26T12:34:56, or the date alone.
result<std::chrono::local_seconds> read_time(const std::string& text) {
  int y = 0, month = 0, d = 0, h = 0, m = 0, s = 0, used = 0;
  const int read =
      std::sscanf(text.c_str(), "%4d-%2d-%2d%n%*[T ]%2d:%2d:%2d%n", &y, &month, &d, &used, &h, &m, &s, &used);
  const std::chrono::year_month_day day{std::chrono::year(y),
                                        std::chrono::month(static_cast<unsigned>(month)),
                                        std::chrono::day(static_cast<unsigned>(d))};
  const bool whole = (read == 3 || read == 6) && static_cast<std::size_t>(used) == text.size();
  if (!whole || !day.ok() || h < 0 || h > 23 || m < 0 || m > 59 || s < 0 || s > 59)
    return core::bad_param("now", "now must be a time like 2025-07-26T12:34:56, not '{}'", text);
  return std::chrono::local_days(day) + std::chrono::hours(h) + std::chrono::minutes(m) +
         std::chrono::seconds(s);
}

// Takes the members that no request of a server has out of `o`: special tokens, the time, and further
// variables of the template, which may also stand beside the messages.
result<void> take_own_members(json::object& o, rendering_request& r) {
  static constexpr std::string_view of_requests[] = {"messages",
                                                     "tools",
                                                     "tool_choice",
                                                     "documents",
                                                     "chat_template_kwargs",
                                                     "add_generation_prompt",
                                                     "continue_final_message"};
  json::object rest, variables;
  for (auto& [key, value] : o) {
    const std::string_view name = key;
    if (name == "now") {
      if (!value.is_string()) return core::bad_param("now", "now must be a string");
      const auto at = read_time(std::string(value.get_string()));
      if (!at) return at.error();
      r.now = *at;
    } else if (name.ends_with("_token")) {
      if (!value.is_string() && !value.is_null())
        return core::bad_param(std::string(name), "{} must be a string", name);
      if (value.is_string()) r.tokens[name] = value;
    } else if (std::ranges::find(of_requests, name) != std::ranges::end(of_requests)) {
      rest[name] = std::move(value);
    } else {
      variables[name] = std::move(value);
    }
  }
  if (!variables.empty() && rest.contains("chat_template_kwargs") && rest["chat_template_kwargs"].is_object())
    for (auto& [name, value] : rest["chat_template_kwargs"].get_object()) variables[name] = std::move(value);
  if (!variables.empty()) rest["chat_template_kwargs"] = std::move(variables);
  o = std::move(rest);
  return {};
}

// The messages for --as-sent: whatever a template may be given.
result<core::conversation> read_any_messages(const json::value& v) {
  if (!v.is_array()) return core::bad_param("messages", "messages must be an array");
  core::conversation out;
  out.messages = v.get_array();
  return out;
}

// Whether the tools are hidden from the template, or there are none.
bool is_hidden(const json::object& o) {
  const auto *tools = o.if_contains("tools"), *choice = o.if_contains("tool_choice");
  return !tools || !tools->is_array() || tools->get_array().empty() || (choice && *choice == "none");
}

result<rendering_request> parse(const std::string& text, bool as_sent, const json::value& tools) {
  auto value = core::read_json(text, most_json);
  if (!value) return value.error();
  auto* o = value->if_object();
  if (!o) return core::bad_param("", "not a JSON object");
  if (!tools.is_null() && !o->contains("tools")) o->emplace("tools", tools);
  rendering_request r{.said = {}, .tokens = {}, .now = actors::local_now(), .notes = {}};
  if (auto taken = take_own_members(*o, r); !taken) return taken.error();
  const auto* messages = o->if_contains("messages");
  if (!messages) return core::bad_param("messages", "messages is missing");
  auto said = as_sent ? read_any_messages(*messages) : net::read_messages("messages", *messages, r.notes);
  if (!said) return said.error();
  if (as_sent && !is_hidden(*o)) said->tools = o->at("tools");
  actors::request with;
  with.input = std::move(*said);
  if (!as_sent)
    if (auto read = net::read_tools(*o, net::tool_dialect::chat, with, r.notes); !read) return read.error();
  if (auto read = net::read_template_fields(*o, with); !read) return read.error();
  r.said = std::move(std::get<core::conversation>(with.input));
  return r;
}

result<core::jinja::rendering> render(const renderer& by, const std::string& text) {
  const auto r = parse(text, by.as_sent, by.tools);
  if (!r) return r.error();
  const auto with_tokens = by.chat->with_tokens(r->tokens);
  if (by.as_sent) return with_tokens.render_as_sent(r->said, r->now);
  std::vector<std::string> changes;
  auto made = with_tokens.render(r->said, r->now, {}, &changes);
  for (const auto& note : r->notes) std::cerr << note.where << ": " << note.message << '\n';
  for (const auto& change : changes) std::cerr << change << '\n';
  return made;
}

std::vector<core::token_id> ids_of(const renderer& by, const core::jinja::rendering& made) {
  return by.tokenizer->encode_parts(core::parts_of(made));
}

// Each line of the input gives one line of the output, errors too, so that the lines correspond.
int run_batch(const renderer& by, const render_options& o) {
  std::ifstream in(o.batch);
  if (!in) return fail("--batch " + o.batch + ": cannot be read");
  int exit = exit_code::done;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty()) continue;
    const auto made = render(by, line);
    json::object out;
    if (made) {
      out["text"] = made->text;
      if (o.ids) out["ids"] = json::value_from(ids_of(by, *made));
    } else {
      out = answer_of(made.error());
      std::cerr << o.batch << ", line " << number << ": " << made.error().message << '\n';
      exit = exit_code::bad_usage;
    }
    std::cout << json::serialize(out) << '\n';
  }
  return exit;
}

// A line a token: its id, its piece, and the word `control` for a control token.
void print_ids(const renderer& by, const core::jinja::rendering& made) {
  for (const auto id : ids_of(by, made))
    std::cout << id << '\t' << printable(by.tokenizer->piece(id))
              << (by.tokenizer->is_special(id) ? "\tcontrol" : "") << '\n';
}

result<renderer> make_renderer(const render_options& o) {
  if (!o.source.empty()) {
    if (!o.model.empty() || o.chatml || o.ids)
      return core::bad_param("template",
                             "--template goes without --model, --chatml and --ids: it has no "
                             "vocabulary");
    std::ifstream in(o.source);
    const std::string source(std::istreambuf_iterator<char>(in), {});
    if (!in) return core::bad_param("template", "--template {}: cannot be read", o.source);
    return renderer{core::chat_template::from_source(source, {}, o.source), nullptr, o.as_sent, nullptr};
  }
  const std::string dir = o.model.empty() ? bundled_model() : o.model;
  auto tokenizer = core::load_tokenizer(dir);
  if (!tokenizer) return tokenizer.error();
  auto chat = core::chat_template::load(dir, **tokenizer, o.chatml);
  if (!chat) return chat.error();
  return renderer{std::move(*chat), std::move(*tokenizer), o.as_sent, nullptr};
}

result<json::value> read_tools_file(const std::string& file) {
  std::ifstream in(file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in) return core::bad_param("tools", "--tools {}: cannot be read", file);
  auto tools = core::read_json(text, most_json);
  if (!tools) return core::bad_param("tools", "--tools {}: {}", file, tools.error().message);
  if (!tools->is_array()) return core::bad_param("tools", "--tools {}: not a JSON array", file);
  return tools;
}

// Says how the model writes answers to conversations with tools.
void tell_format(const core::answer_format& f) {
  std::cerr << "calls: " << core::calls_text(f) << "\nreasoning: " << core::reasoning_text(f) << '\n';
}

int run(const render_options& o) {
  auto by = make_renderer(o);
  if (!by) return fail(by.error().message);
  if (const auto* fault = by->chat->fault()) return fail(fault->message);
  if (!o.tools.empty()) {
    auto tools = read_tools_file(o.tools);
    if (!tools) return fail(tools.error().message);
    by->tools = std::move(*tools);
    tell_format(by->chat->format(true));
  }
  if (!o.batch.empty()) return run_batch(*by, o);
  const auto made = render(*by, std::string(std::istreambuf_iterator<char>(std::cin), {}));
  if (!made) return fail(made.error().message);
  if (o.ids) {
    print_ids(*by, *made);
  } else {
    std::cout << printable(made->text) << (isatty(STDOUT_FILENO) ? "\n" : "");
  }
  return exit_code::done;
}

}  // namespace

command add_render(CLI::App& app) {
  auto o = std::make_shared<render_options>();
  app.add_option("--model", o->model,
                 "a directory with tokenizer.json, or a GGUF file; none: the bundled rill")
      ->type_name("PATH");
  app.add_option("--template", o->source, "a chat template instead of a model's")->type_name("F.jinja");
  app.add_flag("--chatml", o->chatml, "use ChatML whatever template the model has");
  app.add_flag("--as-sent", o->as_sent,
               "give the template the messages unchanged, as transformers does, and not as requests do");
  app.add_option("--tools", o->tools,
                 "tools of conversations that have none; says which formats of calls and reasoning the "
                 "template has")
      ->type_name("F.json");
  app.add_flag("--ids", o->ids, "tokens instead of text, control tokens marked");
  app.add_option("--batch", o->batch,
                 "lines {\"messages\":[…],…} in; {\"text\":…} or {\"error\":…} out, a line each")
      ->type_name("F.jsonl");
  app.footer("Without --batch: one such object on standard input, the prompt on standard output.");
  return [o] { return run(*o); };
}

}  // namespace weir::apps
