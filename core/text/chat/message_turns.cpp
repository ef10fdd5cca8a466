#include "core/text/chat/message_turns.h"

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/text/chat/template_prober.h"

namespace weir::core {
namespace {

namespace json = boost::json;

constexpr std::size_t short_id_bytes = 9;
// A longer name is not written into results, of which one call may have many.
constexpr std::size_t longest_filled_name = 128;

// Members in which clients send an assistant's reasoning. The first that is a text counts.
constexpr std::string_view reasoning_members[] = {"reasoning_content", "reasoning", "thinking"};

std::string_view text_member(const json::object& o, std::string_view name) {
  const json::value* v = o.if_contains(name);
  return v && v->is_string() ? std::string_view(v->get_string()) : std::string_view();
}

std::string_view role_of(const json::value& m) {
  const auto* o = m.if_object();
  return o ? text_member(*o, "role") : std::string_view();
}

bool is_instruction(std::string_view role) { return role == "system" || role == "developer"; }

// The calls of a message; null: it has none.
json::array* calls_of(json::value& m) {
  auto* o = m.if_object();
  json::value* calls = o ? o->if_contains("tool_calls") : nullptr;
  return calls && calls->is_array() && !calls->get_array().empty() ? &calls->get_array() : nullptr;
}

// ---- contents

std::string text_of(const json::value& m) {
  const json::value* said = m.as_object().if_contains("content");
  if (!said) return {};
  if (said->is_string()) return std::string(said->get_string());
  const auto joined = joined_parts(*said);
  return joined ? std::string(*joined) : std::string();
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\n\r\f\v") == text.npos; }

void set_text(json::value& m, std::string_view text) {
  m.as_object()["content"] = json::string_view(text.data(), text.size());
}

// The parts of a content that is more than text; null: it is text alone.
json::array* parts_of(json::value& m) {
  json::value* said = m.as_object().if_contains("content");
  return said && said->is_array() && !joined_parts(*said) ? &said->get_array() : nullptr;
}

json::object as_part(const std::string& text) { return {{"type", "text"}, {"text", text}}; }

void append_text(json::value& m, const std::string& text) {
  if (auto* parts = parts_of(m)) {
    parts->push_back(as_part(text));
    return;
  }
  const std::string before = text_of(m);
  set_text(m, before.empty() ? text : before + "\n\n" + text);
}

void prepend_text(json::value& m, const std::string& text) {
  if (auto* parts = parts_of(m)) {
    parts->insert(parts->begin(), as_part(text));
    return;
  }
  const std::string behind = text_of(m);
  set_text(m, behind.empty() ? text : text + "\n\n" + behind);
}

void add_paragraph(std::string& text, std::string_view more) {
  if (is_blank(more)) return;
  if (!text.empty()) text += "\n\n";
  text += more;
}

// ---- instructions

// Makes one message of those at the beginning.
void join_first(json::array& messages) {
  std::size_t count = 0;
  while (count < messages.size() && is_instruction(role_of(messages[count]))) ++count;
  if (count < 2) return;
  std::string more;
  for (std::size_t i = 1; i < count; ++i) add_paragraph(more, text_of(messages[i]));
  if (!more.empty()) append_text(messages[0], more);
  messages.erase(messages.begin() + 1, messages.begin() + static_cast<std::ptrdiff_t>(count));
}

// Where the text of instructions stands that have no message of their own.
enum class reminder_place { own_turn, before, behind };

// `before`, `behind`: the roles beside it; empty: there is none.
reminder_place place_of_reminder(std::string_view before, std::string_view behind,
                                 const message_turns& turns) {
  const bool user_behind = behind == "user" && !turns.user_runs;
  if (behind == "tool") return reminder_place::behind;  // a call and its result stay together
  if (before == "user" && !turns.user_runs) return reminder_place::before;
  if (user_behind) return reminder_place::behind;
  if (before == "tool" && !turns.user_after_result) return reminder_place::before;
  return reminder_place::own_turn;
}

// `behind`: the message that comes next; null: there is none.
void put_reminder(const std::string& text, json::array& messages, json::value* behind,
                  const message_turns& turns) {
  switch (place_of_reminder(role_of(messages.back()), behind ? role_of(*behind) : "", turns)) {
    case reminder_place::own_turn:
      messages.push_back(json::object{{"role", "user"}, {"content", text}});
      break;
    case reminder_place::before:
      append_text(messages.back(), text);
      break;
    case reminder_place::behind:
      prepend_text(*behind, text);
      break;
  }
}

// Puts reminders in the place of instructions behind other turns. Returns how many.
std::size_t remind(json::array& messages, const message_turns& turns) {
  const auto moves = [&](const json::value& m) {
    const auto role = role_of(m);
    return (role == "system" && !turns.late_system) || (role == "developer" && !turns.late_developer);
  };
  std::size_t at = 0, count = 0;
  while (at < messages.size() && is_instruction(role_of(messages[at]))) ++at;
  if (std::none_of(messages.begin() + static_cast<std::ptrdiff_t>(at), messages.end(), moves)) return 0;
  json::array all = std::exchange(messages, {});
  for (std::size_t i = 0; i < at; ++i) messages.push_back(std::move(all[i]));
  while (at < all.size()) {
    std::string text;  // of the instructions up to the next message that stays
    for (; at < all.size() && moves(all[at]); ++at) {
      const std::string said = text_of(all[at]);
      if (is_blank(said)) continue;
      add_paragraph(text, "<system-reminder>\n" + said + "\n</system-reminder>");
      ++count;
    }
    if (!text.empty()) put_reminder(text, messages, at < all.size() ? &all[at] : nullptr, turns);
    if (at < all.size()) messages.push_back(std::move(all[at++]));
  }
  return count;
}

// ---- calls

void name_results(json::array& messages) {
  std::unordered_map<std::string, json::string> names;
  for (json::value& m : messages) {
    if (const auto* calls = calls_of(m)) {
      for (const json::value& call : *calls) {
        const auto* o = call.if_object();
        const json::value* function = o ? o->if_contains("function") : nullptr;
        if (!function || !function->is_object()) continue;
        const auto id = text_member(*o, "id"), name = text_member(function->get_object(), "name");
        if (!id.empty() && !name.empty() && name.size() <= longest_filled_name)
          names[std::string(id)] = json::string(name);
      }
    }
    if (role_of(m) != "tool") continue;
    auto& o = m.get_object();
    if (const json::value* name = o.if_contains("name"); name && !name->is_null()) continue;
    const auto called = names.find(std::string(text_member(o, "tool_call_id")));
    if (called != names.end()) o["name"] = called->second;
  }
}

bool is_short(std::string_view id) {
  return id.size() == short_id_bytes && std::ranges::all_of(id, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
         });
}

// FNV-1a in letters and digits: the same id has the same short one in each conversation.
std::string short_id(std::string_view id) {
  constexpr std::string_view digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : id) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::string out(short_id_bytes, '0');
  for (char& c : out) {
    c = digits[h % digits.size()];
    h /= digits.size();
  }
  return out;
}

void shorten_id(json::object& o, std::string_view member) {
  const std::string_view id = text_member(o, member);
  if (!id.empty() && !is_short(id)) o[member] = short_id(id);
}

void shorten_ids(json::array& messages) {
  for (json::value& m : messages) {
    if (auto* calls = calls_of(m))
      for (json::value& call : *calls)
        if (auto* o = call.if_object()) shorten_id(*o, "id");
    if (role_of(m) == "tool") shorten_id(m.get_object(), "tool_call_id");
  }
}

// The results of calls by the ids of these; those without an id by their numbers.
std::unordered_multimap<std::string, std::size_t> by_ids(std::span<json::value> results) {
  std::unordered_multimap<std::string, std::size_t> out;
  for (std::size_t r = 0; r < results.size(); ++r) {
    const auto id = text_member(results[r].get_object(), "tool_call_id");
    out.emplace(id.empty() ? fmt::format("\n{}", r) : std::string(id), r);
  }
  return out;
}

// Adds a message for each call of `m`, the results of each behind it. `results` are those of all calls.
void add_split(json::value m, std::span<json::value> results, json::array& to) {
  auto known = by_ids(results);
  std::vector<bool> given(results.size());
  json::array calls = std::move(*calls_of(m));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto* o = calls[i].if_object();
    const std::string id(o ? text_member(*o, "id") : std::string_view());
    json::object one = i == 0 ? m.get_object() : json::object{{"role", "assistant"}, {"content", ""}};
    one["tool_calls"] = json::array{std::move(calls[i])};
    to.push_back(std::move(one));
    std::vector<std::size_t> its;
    for (const auto& key : {id, fmt::format("\n{}", i)}) {
      const auto [from, end] = known.equal_range(key);
      for (auto r = from; r != end; ++r) its.push_back(r->second);
      known.erase(from, end);
    }
    std::ranges::sort(its);
    for (const auto r : its) {
      given[r] = true;
      to.push_back(std::move(results[r]));
    }
  }
  for (std::size_t r = 0; r < results.size(); ++r)  // of no call of this message
    if (!given[r]) to.push_back(std::move(results[r]));
}

void split_calls(json::array& messages) {
  const auto several = [](json::value& m) {
    const auto* calls = calls_of(m);
    return calls && calls->size() > 1 && role_of(m) == "assistant";
  };
  if (std::ranges::none_of(messages, several)) return;
  json::array all = std::exchange(messages, {});
  for (std::size_t i = 0; i < all.size();) {
    json::value& m = all[i++];
    if (!several(m)) {
      messages.push_back(std::move(m));
      continue;
    }
    const std::size_t from = i;
    while (i < all.size() && role_of(all[i]) == "tool") ++i;
    add_split(std::move(m), std::span(all.data() + from, i - from), messages);
  }
}

// ---- reasoning

void place_reasoning(json::array& messages, const std::string& member) {
  for (json::value& m : messages) {
    if (role_of(m) != "assistant") continue;
    auto& o = m.get_object();
    const auto sent = std::ranges::find_if(
        reasoning_members, [&](std::string_view name) { return !text_member(o, name).empty(); });
    if (sent == std::end(reasoning_members)) continue;
    const std::string text(text_member(o, text_member(o, member).empty() ? *sent : std::string_view(member)));
    for (const std::string_view name : reasoning_members)
      if (name != member && !text_member(o, name).empty()) o.stable_erase(name);
    o[member] = text;
  }
}

// ---- what a template takes

// Words that no template has by itself.
constexpr std::string_view said_word = "weirsaid";
constexpr std::string_view neighbours[] = {"weirone", "weirtwo", "weirthree"};

bool has(std::string_view text, std::string_view word) { return text.find(word) != text.npos; }

class turn_prober {
 public:
  turn_prober(const jinja::program& p, const json::object& tokens, const message_forms& forms)
      : by_(p, tokens), forms_(forms) {}

  std::string prompt_of(json::array messages, bool tools) const {
    fit(messages, forms_);
    return by_.prompt_of(std::move(messages), tools);
  }
  std::string prompt_of(const std::string& messages, bool tools) const {
    return prompt_of(messages_of(messages), tools);
  }

 private:
  template_prober by_;
  const message_forms& forms_;
};

// Whether the words stand in the prompt in this order, each of them once.
bool in_order(std::string_view prompt, std::span<const std::string_view> words) {
  std::size_t from = 0;
  for (const auto word : words) {
    const auto at = prompt.find(word);
    if (at == prompt.npos || at < from || prompt.find(word, at + 1) != prompt.npos) return false;
    from = at;
  }
  return true;
}

// The words of the messages' contents, in their order.
std::vector<std::string_view> words_of(const json::array& messages) {
  std::vector<std::string_view> out;
  for (const json::value& m : messages)
    if (const auto text = text_member(m.get_object(), "content"); text.starts_with("weir"))
      out.push_back(text);
  return out;
}

// A conversation in which one message has the content `weirsaid`. With `tools` it has a call.
struct turn_probe {
  std::string messages;
  bool tools = false;
};

// False: the template shows the conversation without that message, and not with it at its place.
bool takes(const turn_prober& by, const turn_probe& probe) {
  const json::array with = messages_of(probe.messages);
  json::array without;
  for (const json::value& m : with)
    if (text_member(m.get_object(), "content") != said_word) without.push_back(m);
  const auto known = words_of(without), all = words_of(with);
  if (!in_order(by.prompt_of(without, probe.tools), known)) return true;
  return in_order(by.prompt_of(with, probe.tools), all);
}

// Messages as JSON.
constexpr std::string_view first = R"({"role":"system","content":"weirfirst"})",
                           question = R"({"role":"user","content":"weirone"})",
                           answer = R"({"role":"assistant","content":"weirtwo"})",
                           next_question = R"({"role":"user","content":"weirthree"})",
                           call = R"({"role":"assistant","content":"","tool_calls":[{"id":"abcdef123",)"
                                  R"("type":"function","function":{"name":"weir",)"
                                  R"("arguments":{"weirkey":"weirvalue"}}}]})",
                           call_result = R"({"role":"tool","tool_call_id":"abcdef123","name":"weir",)"
                                         R"("content":"weirtwo"})";

std::string said_by(std::string_view role) {
  return fmt::format(R"({{"role":"{}","content":"{}"}})", role, said_word);
}

std::string listed(std::initializer_list<std::string_view> messages) {
  return fmt::format("[{}]", fmt::join(messages, ","));
}

bool takes_late(const turn_prober& by, std::string_view role) {
  const std::string late = said_by(role);
  const turn_probe probes[] = {
      {listed({question, answer, next_question, late})},
      {listed({question, answer, late, next_question})},
      {listed({question, late, answer, next_question})},
      {listed({first, question, answer, next_question, late})},
      {listed({first, question, answer, late, next_question})},
      {listed({question, call, call_result, late}), true},
  };
  return std::ranges::all_of(probes, [&](const turn_probe& p) { return takes(by, p); });
}

bool takes_first_runs(const turn_prober& by, bool developer) {
  const turn_probe system{listed({first, said_by("system"), question})},
      mixed{listed({first, said_by("developer"), question})};
  return takes(by, system) && (!developer || takes(by, mixed));
}

// Whether each user's turn is followed by what asks for an answer, also where another one follows: for the
// model that is an empty answer between two questions.
bool asks_after_each(std::string_view prompt) {
  const auto one = prompt.find(neighbours[0]), two = prompt.find(said_word);
  if (one == prompt.npos || two == prompt.npos || two < one) return false;
  const auto behind = prompt.substr(two + said_word.size());
  return !is_blank(behind) && prompt.substr(one + neighbours[0].size()).starts_with(behind);
}

bool takes_user_runs(const turn_prober& by) {
  const std::string more = said_by("user");
  return takes(by, {listed({question, more})}) &&
         takes(by, {listed({question, answer, next_question, more})}) &&
         !asks_after_each(by.prompt_of(listed({question, more}), false));
}

// A message of the assistant that has thought `weirsaid`.
std::string thinking_in(std::string_view member, std::string_view message) {
  return fmt::format(R"({},"{}":"{}"}})", message.substr(0, message.size() - 1), member, said_word);
}

// Whether the reasoning before a call is still shown when a user's turn follows the result. `reasoning`: the
// member that it stands in.
bool keeps_reasoning(const turn_prober& by, std::string_view reasoning) {
  if (reasoning.empty()) return true;
  const std::string thought = thinking_in(reasoning, call);
  return !has(by.prompt_of(listed({question, thought, call_result}), true), said_word) ||
         has(by.prompt_of(listed({question, thought, call_result, next_question}), true), said_word);
}

bool takes_user_after_result(const turn_prober& by, std::string_view reasoning) {
  return takes(by, {listed({question, call, call_result, said_by("user")}), true}) &&
         keeps_reasoning(by, reasoning);
}

// A conversation whose call has this id.
std::string with_id(std::string_view id) {
  std::string text = listed({question, call, call_result});
  constexpr std::string_view known = "abcdef123";
  for (auto at = text.find(known); at != text.npos; at = text.find(known, at + id.size()))
    text.replace(at, known.size(), id);
  return text;
}

bool wants_short_ids(const turn_prober& by) {
  for (const bool tools : {true, false})
    if (by.prompt_of(with_id("call_0123456789abcdefghij"), tools).empty() &&
        !by.prompt_of(with_id("abcdef123"), tools).empty())
      return true;
  return false;
}

json::array with_calls(std::size_t count) {
  constexpr const char* ids[] = {"abcdef123", "abcdef124"};
  json::array calls, out = messages_of(listed({question}));
  for (std::size_t i = 0; i < count; ++i)
    calls.push_back(
        json::object{{"id", ids[i]},
                     {"type", "function"},
                     {"function", {{"name", "weir"}, {"arguments", {{"weirkey", neighbours[1 + i]}}}}}});
  out.push_back(json::object{{"role", "assistant"}, {"content", ""}, {"tool_calls", std::move(calls)}});
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(
        json::object{{"role", "tool"}, {"tool_call_id", ids[i]}, {"name", "weir"}, {"content", "a"}});
  return out;
}

// True: two calls are shown in two messages, and not in one.
bool takes_one_call(const turn_prober& by) {
  for (const bool tools : {true, false}) {
    const auto shows_both = [&](json::array messages) {
      const std::string made = by.prompt_of(std::move(messages), tools);
      return has(made, neighbours[1]) && has(made, neighbours[2]);
    };
    json::array apart = with_calls(2);
    if (shows_both(apart)) continue;
    split_calls(apart);
    if (shows_both(std::move(apart))) return true;
  }
  return false;
}

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Whether the source names such a member: behind a point or in quotes.
bool names_member(std::string_view source, std::string_view member) {
  for (auto at = source.find(member); at != source.npos; at = source.find(member, at + 1)) {
    const char before = at == 0 ? ' ' : source[at - 1];
    const auto end = at + member.size();
    const bool whole = end == source.size() || !is_word(source[end]);
    if (whole && (before == '.' || before == '\'' || before == '"')) return true;
  }
  return false;
}

std::string reasoning_member(const turn_prober& by, std::string_view source) {
  for (const std::string_view name : reasoning_members) {
    const turn_probe probes[] = {{listed({question, thinking_in(name, answer)})},
                                 {listed({question, thinking_in(name, call), call_result}), true},
                                 {listed({question, thinking_in(name, answer), next_question})}};
    for (const turn_probe& p : probes)
      if (has(by.prompt_of(p.messages, p.tools), said_word)) return std::string(name);
  }
  for (const std::string_view name : reasoning_members)
    if (names_member(source, name)) return std::string(name);
  return {};
}

}  // namespace

message_turns turns_of(const jinja::program& p, std::string_view source, const json::object& tokens,
                       const message_forms& forms) {
  const turn_prober by(p, tokens, forms);
  const bool developer = has(source, "developer");
  message_turns out;
  out.late_system = takes_late(by, "system");
  out.late_developer = developer ? takes_late(by, "developer") : out.late_system;
  out.first_runs = takes_first_runs(by, developer);
  out.user_runs = takes_user_runs(by);
  out.reasoning = reasoning_member(by, source);
  out.user_after_result = takes_user_after_result(by, out.reasoning);
  out.short_ids = wants_short_ids(by);
  out.one_call = takes_one_call(by);
  return out;
}

turn_changes arrange(json::array& messages, const message_turns& turns) {
  turn_changes out;
  if (messages.empty()) return out;
  if (!turns.first_runs) join_first(messages);
  out.reminders = remind(messages, turns);
  name_results(messages);
  if (turns.one_call) split_calls(messages);
  if (turns.short_ids) shorten_ids(messages);
  if (!turns.reasoning.empty()) place_reasoning(messages, turns.reasoning);
  return out;
}

}  // namespace weir::core
