#include "core/text/answer/find_format.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <optional>
#include <vector>

#include "core/text/answer/reader.h"

namespace weir::core {
namespace {

namespace json = boost::json;

constexpr std::string_view white = " \t\r\n";
constexpr std::string_view question_word = "weirask";
constexpr std::string_view thought_word = "weirthought", said_word = "weirsaid", called_word = "weirlook";

constexpr const char* probe_tools = R"([{"type":"function","function":{"name":"weirlook","description":"d",
  "parameters":{"type":"object","properties":{"place":{"type":"string","description":"d"},
  "count":{"type":"integer","description":"d"}},"required":["place"]}}},
  {"type":"function","function":{"name":"weirtell","description":"d","parameters":{"type":"object",
  "properties":{"hour":{"type":"string","description":"d"}},"required":["hour"]}}}])";

constexpr const char* parameters_of_look =
    R"({"properties":{"place":{"type":"string"},"count":{"type":"integer"}}})";
constexpr const char* parameters_of_tell = R"({"properties":{"hour":{"type":"string"}}})";

// A text of the template, from the end of the question on.
struct written_calls {
  std::string text;
  bool bare = false;  // the first call stands directly behind the prompt of an answer
};

struct probe_call {
  const char* name;
  const char* arguments;
};
constexpr probe_call first_call = {"weirlook", R"({"place":"weir \"a\" b","count":3})"};
constexpr probe_call second_call = {"weirtell", R"({"hour":"weirhour"})"};

// A vocabulary of bytes, in which no mark is one token.
class no_tokens final : public tokenizer {
 public:
  std::vector<token_id> encode(std::string_view utf8, encode_options) const override {
    std::vector<token_id> out;
    for (const unsigned char c : utf8) out.push_back(c);
    return out;
  }
  std::string decode(std::span<const token_id>, decode_options) const override { return {}; }
  std::string_view token_bytes(token_id) const override { return {}; }
  bool is_special(token_id) const override { return false; }
  std::string piece(token_id) const override { return {}; }
  std::uint32_t vocab_size() const override { return 256; }
  std::optional<token_id> bos() const override { return std::nullopt; }
  std::optional<token_id> id_of(std::string_view) const override { return std::nullopt; }
  bool clean_up_spaces() const override { return false; }
  bool adds_bos() const override { return false; }
};

class prober {
 public:
  prober(const jinja::program& p, const json::object& tokens) : program_(p), tokens_(tokens) {
    for (const char* name : {"bos_token", "eos_token"})
      if (!tokens_.contains(name)) tokens_[name] = "";
  }

  // The prompt; empty if the template fails or refuses.
  std::string prompt_of(const json::array& messages, bool tools, bool generate) const {
    static const jinja::limits most{
        .steps = 1'000'000, .depth = 500, .memory_bytes = 16u << 20, .output_bytes = 1u << 20};
    const json::object given{{"messages", messages},
                             {"tools", tools ? json::parse(probe_tools) : json::value()},
                             {"documents", nullptr},
                             {"add_generation_prompt", generate}};
    auto made = program_.render({given, tokens_, {}}, most);
    return made ? std::move(made->text) : std::string();
  }

 private:
  const jinja::program& program_;
  json::object tokens_;
};

const json::object& question() {
  static const json::object q{{"role", "user"}, {"content", question_word}};
  return q;
}

json::object call_of(const probe_call& c, const char* id, bool as_text) {
  json::value arguments = as_text ? json::value(c.arguments) : json::parse(c.arguments);
  return {{"id", id},
          {"type", "function"},
          {"function", json::object{{"name", c.name}, {"arguments", std::move(arguments)}}}};
}

// What the template writes of an answer with these calls, up to its results; empty: it refuses.
written_calls calls_as_written(const prober& by, const std::vector<probe_call>& calls, bool as_text,
                               const json::value& content) {
  static constexpr const char* ids[] = {"abcdef123", "abcdef124"};
  json::array made, messages{question()};
  for (std::size_t i = 0; i < calls.size(); ++i) made.push_back(call_of(calls[i], ids[i], as_text));
  messages.push_back(
      json::object{{"role", "assistant"}, {"content", content}, {"tool_calls", std::move(made)}});
  for (std::size_t i = 0; i < calls.size(); ++i)
    messages.push_back(json::object{
        {"role", "tool"}, {"tool_call_id", ids[i]}, {"name", calls[i].name}, {"content", "weirresult"}});
  const std::string all = by.prompt_of(messages, true, false),
                    before = by.prompt_of({question()}, true, true);
  const auto asked = all.rfind(question_word);
  if (asked == all.npos) return {};
  const auto from = asked + question_word.size();
  const auto to = all.find("weirresult", from);
  written_calls out;
  out.text = all.substr(from, to == all.npos ? to : to - from);
  const std::string_view behind = std::string_view(all).substr(std::min(before.size(), all.size()));
  out.bare = !before.empty() && all.starts_with(before) && behind.starts_with("{");
  return out;
}

bool same_json(std::string_view a, std::string_view b) {
  boost::system::error_code failed;
  const auto read = [&](std::string_view s) {
    return json::parse(json::string_view(s.data(), s.size()), failed);
  };
  const auto x = read(a), y = read(b);
  return !failed && x == y;
}

bool has_spelling(std::string_view text, std::string_view spelling) {
  const auto from = spelling.find_first_not_of(white);
  if (from == spelling.npos) return true;
  spelling = spelling.substr(from, spelling.find_last_not_of(white) + 1 - from);
  std::string one, other;
  for (const char c : text)
    if (white.find(c) == white.npos) one += c;
  for (const char c : spelling)
    if (white.find(c) == white.npos) other += c;
  return one.find(other) != one.npos;
}

// Whether a reader of this format finds exactly these calls in what the template wrote.
bool reads_back(const call_format& f, envelope messages, const written_calls& made,
                const std::vector<probe_call>& calls) {
  std::string_view written = made.text;
  if (f.bare && !made.bare) return false;
  for (const auto s : {f.section_open, f.section_close, f.open, f.close, f.key_end, f.value_close})
    if (f.how != call_format::kind::harmony && !has_spelling(written, s)) return false;
  static const no_tokens bytes;
  answer_format format;
  format.calls = f;
  format.messages = messages;
  auto plan = std::make_shared<answer_plan>();
  plan->format = std::make_shared<const known_format>(format, bytes);
  plan->calls_only = f.bare;
  for (const auto& [name, schema] :
       {std::pair{"weirlook", parameters_of_look}, {"weirtell", parameters_of_tell}}) {
    tool_definition& t = plan->tools.emplace_back();
    t.name = name;
    t.parameters = schema;
  }
  answer_reader reader(std::move(plan));
  std::string text;
  answer_marks marks;
  if (f.bare) written = written.substr(std::min(written.find('{'), written.size()));
  if (messages != envelope::none)  // the prompt has the beginning of the message
    written = written.substr(
        std::min(written.find("assistant") + std::string_view("assistant").size(), written.size()));
  reader.take(0, 0, written, text, marks);
  reader.end(0, {}, text, marks);
  if (marks.calls.size() != calls.size()) return false;
  std::size_t i = 0;
  for (auto m = marks.list.begin(); m != marks.list.end(); ++m) {
    if (m->what != answer_mark::kind::call) continue;
    const auto end = std::next(m) == marks.list.end() ? text.size() : std::next(m)->offset;
    if (!marks.calls[i].whole || marks.calls[i].name != calls[i].name) return false;
    if (!same_json(std::string_view(text).substr(m->offset, end - m->offset), calls[i].arguments))
      return false;
    ++i;
  }
  return true;
}

envelope envelope_of(std::string_view source) {
  const auto has = [&](std::string_view s) { return source.find(s) != source.npos; };
  if (has("<|channel|>") && has("<|message|>") && has("analysis")) return envelope::harmony;
  if (has("to=self") && has("<|message|>")) return envelope::recipients;
  return envelope::none;
}

// The form of the calls that the template writes; without a name if it writes none that is known.
call_format written_form(const prober& by, envelope messages, const json::value& content) {
  const std::vector<std::vector<probe_call>> probes = {{first_call, second_call}, {first_call}};
  for (const auto& calls : probes) {
    for (const bool as_text : {false, true}) {
      const auto written = calls_as_written(by, calls, as_text, content);
      if (written.text.find(called_word) == std::string::npos) continue;
      for (const auto& f : call_formats())
        if ((f.how == call_format::kind::harmony) == (messages == envelope::harmony) &&
            reads_back(f, messages, written, calls))
          return f;
    }
  }
  return {};
}

bool shows_calls(const prober& by, const json::value& content) {
  for (const bool as_text : {false, true})
    if (calls_as_written(by, {first_call}, as_text, content).text.find(called_word) != std::string::npos)
      return true;
  return false;
}

// The form in which the model of a template answers that shows tools and writes no calls.
call_format unwritten_form(const prober& by, std::string_view source) {
  const std::string shown = by.prompt_of({question()}, true, true);
  const auto has = [&](std::string_view s) { return shown.find(s) != shown.npos; };
  if (!has(called_word)) return {};
  for (const char* name : {"kimi", "deepseek-v3"}) {
    const call_format& f = *find_call_format(name);
    if (has_spelling(source, f.open) && has_spelling(source, f.middle)) return f;
  }
  if (has("List of tools: ")) return *find_call_format("lfm2");
  if (has("<tool_call>") && has("\"arguments\"")) return *find_call_format("hermes");
  if (has("<|tool_call|>") && has("<|tool|>")) return *find_call_format("phi");
  if (has("<|tool|>") && source.find("<|/tool|>") != source.npos) return *find_call_format("phi");
  if (has("<|tool_call|>")) return *find_call_format("granite");
  if (has("Action:") && has("tool_name")) return *find_call_format("command-r");
  return {};
}

// The mark before, or behind, a word: from "<" or "[" to its end, with white space around it.
std::string mark_beside(std::string_view text, std::size_t from, std::size_t to, bool before) {
  const auto is_white = [&](std::size_t i) { return white.find(text[i]) != white.npos; };
  std::size_t a = from, b = to;
  if (before) {
    while (a > 0 && is_white(a - 1)) --a;
    if (a == 0 || (text[a - 1] != '>' && text[a - 1] != ']')) return {};
    const char open = text[a - 1] == '>' ? '<' : '[';
    const auto begin = text.rfind(open, a - 1);
    return begin == text.npos ? std::string() : std::string(text.substr(begin, from - begin));
  }
  while (b < text.size() && is_white(b)) ++b;
  if (b == text.size() || (text[b] != '<' && text[b] != '[')) return {};
  auto end = text.find(text[b] == '<' ? '>' : ']', b);
  if (end == text.npos) return {};
  for (++end; end < text.size() && is_white(end); ++end) {
  }
  return std::string(text.substr(to, end - to));
}

reasoning_format reasoning_of(const prober& by, std::string_view source) {
  json::object answer{{"role", "assistant"}, {"content", said_word}};
  for (const char* name : {"reasoning_content", "reasoning", "thinking"}) answer[name] = thought_word;
  json::object with_call = answer;
  with_call["tool_calls"] = json::array{call_of(first_call, "abcdef123", false)};
  json::object only_call = with_call;
  only_call["content"] = "";
  const json::object result{
      {"role", "tool"}, {"tool_call_id", "abcdef123"}, {"name", first_call.name}, {"content", "weirresult"}};
  for (const auto& [messages, tools] : {std::pair{json::array{question(), answer}, false},
                                        {json::array{question(), with_call, result}, true},
                                        {json::array{question(), only_call, result}, true}}) {
    const std::string all = by.prompt_of(messages, tools, false);
    const auto at = all.find(thought_word);
    if (at == all.npos) continue;
    reasoning_format f;
    f.open = mark_beside(all, at, at + thought_word.size(), true);
    f.close = mark_beside(all, at, at + thought_word.size(), false);
    // Gemma names the channel behind its mark.
    if (const auto channel = all.rfind("<|channel>thought", at); f.open.empty() && channel != all.npos)
      f.open = all.substr(channel, at - channel);
    if (!f.open.empty() && !f.close.empty()) return f;
  }
  constexpr std::pair<std::string_view, std::string_view> known[] = {
      {"<think>\n", "\n</think>\n\n"}, {"[THINK]", "[/THINK]"}, {"<seed:think>", "</seed:think>"}};
  for (const auto& [open, close] : known)
    if (has_spelling(source, open) || has_spelling(source, close))
      return {std::string(open), std::string(close)};
  return {};
}

}  // namespace

answer_format find_format(const jinja::program& p, std::string_view source, const json::object& tokens) {
  const prober by(p, tokens);
  answer_format f;
  f.messages = envelope_of(source);
  f.calls = written_form(by, f.messages, "");
  if (!f.has_calls()) {
    f.calls = written_form(by, f.messages, nullptr);
    f.null_beside_calls = f.has_calls();
  }
  const bool written = f.has_calls();
  if (written) f.calls_alone = !shows_calls(by, "weirsaid");
  if (!written) f.calls = unwritten_form(by, source);
  f.writes_calls = written || !f.has_calls();
  if (f.messages == envelope::none) f.reasoning = reasoning_of(by, source);
  return f;
}

bool ends_in_reasoning(const jinja::rendering& prompt, const answer_format& f) {
  const auto strip = [](std::string_view s) {
    const auto from = std::min(s.find_first_not_of(white), s.size());
    return s.substr(from, s.find_last_not_of(white) + 1 - from);
  };
  const std::string_view open = strip(f.reasoning.open), close = strip(f.reasoning.close);
  if (open.empty()) return false;
  const std::size_t from = prompt.content.empty() ? 0 : prompt.content.back().end;
  const std::string_view last = std::string_view(prompt.text).substr(from);
  const auto opened = last.rfind(open), closed = last.rfind(close);
  return opened != last.npos && (closed == last.npos || closed < opened);
}

}  // namespace weir::core
