#include "tests/core/text/answer/answer_fixtures.h"

#include <algorithm>

namespace weir::tests {
namespace {

class marked_bytes final : public core::tokenizer {
 public:
  marked_bytes(std::vector<std::string> marks, bool special) : marks_(std::move(marks)), special_(special) {
    for (int i = 0; i < 256; ++i) bytes_.push_back(std::string(1, static_cast<char>(i)));
  }
  std::vector<core::token_id> encode(std::string_view text, core::encode_options) const override {
    std::vector<core::token_id> ids;
    while (!text.empty()) {
      std::size_t longest = 0, which = 0;
      for (std::size_t i = 0; i < marks_.size(); ++i)
        if (text.starts_with(marks_[i]) && marks_[i].size() > longest) {
          longest = marks_[i].size();
          which = i;
        }
      const auto byte = static_cast<core::token_id>(static_cast<unsigned char>(text.front()));
      ids.push_back(longest > 0 ? static_cast<core::token_id>(256 + which) : byte);
      text.remove_prefix(std::max<std::size_t>(longest, 1));
    }
    return ids;
  }
  std::string decode(std::span<const core::token_id> ids, decode_options) const override {
    std::string out;
    for (const auto id : ids) out += token_bytes(id);
    return out;
  }
  std::string_view token_bytes(core::token_id id) const override {
    if (id < 256) return bytes_[static_cast<std::size_t>(id)];
    return marks_.at(static_cast<std::size_t>(id) - 256);
  }
  bool is_special(core::token_id id) const override { return special_ && id >= 256; }
  std::string piece(core::token_id id) const override { return std::string(token_bytes(id)); }
  std::uint32_t vocab_size() const override { return static_cast<std::uint32_t>(256 + marks_.size()); }
  std::optional<core::token_id> bos() const override { return std::nullopt; }
  std::optional<core::token_id> id_of(std::string_view piece) const override {
    const auto at = std::ranges::find(marks_, piece);
    if (at == marks_.end()) return std::nullopt;
    return static_cast<core::token_id>(256 + (at - marks_.begin()));
  }
  bool clean_up_spaces() const override { return false; }
  bool adds_bos() const override { return false; }

 private:
  std::vector<std::string> marks_, bytes_;
  bool special_;
};

core::tool_definition tool(const char* name, const char* parameters) {
  core::tool_definition t;
  t.name = name;
  t.parameters = parameters;
  return t;
}

std::vector<core::tool_definition> usual_tools() {
  return {tool("look", R"({"type":"object","properties":{"place":{"type":"string"},"count":{"type":"integer"},
                           "deep":{"type":"object"},"sure":{"type":"boolean"}}})"),
          tool("tell", R"({"type":"object","properties":{"hour":{"type":"string"}}})")};
}

}  // namespace

std::shared_ptr<const core::tokenizer> bytes_and_marks(std::vector<std::string> marks, bool special) {
  return std::make_shared<marked_bytes>(std::move(marks), special);
}

std::shared_ptr<const core::answer_plan> plan_of(const answer_setting& s) {
  static const auto bytes = bytes_and_marks({}, false);
  core::answer_format f;
  if (!s.format.empty()) f.calls = *core::find_call_format(s.format);
  f.reasoning = s.reasoning;
  f.messages = s.messages;
  auto plan = std::make_shared<core::answer_plan>();
  plan->format = std::make_shared<const core::known_format>(f, s.words ? *s.words : *bytes);
  plan->tools = s.tools.empty() ? usual_tools() : s.tools;
  plan->separate_reasoning = s.separate;
  plan->begins_in_reasoning = s.begins_in_reasoning;
  plan->calls_only = s.calls_only;
  return plan;
}

std::string shown(const std::string& text, const core::answer_marks& marks) {
  using kind = core::answer_mark::kind;
  std::string out;
  std::size_t calls = 0;
  const auto at = [&](std::size_t i) { return i < marks.list.size() ? marks.list[i].offset : text.size(); };
  if (at(0) > 0) out += "NO MARK:" + text.substr(0, at(0));
  for (std::size_t i = 0; i < marks.list.size(); ++i) {
    const auto& m = marks.list[i];
    const std::string said = text.substr(m.offset, at(i + 1) - m.offset);
    switch (m.what) {
      case kind::text:
        out += '"' + said + '"';
        break;
      case kind::reasoning:
        out += '(' + said + ')';
        break;
      case kind::end:
        if (!said.empty()) out += "BEHIND END:" + said;
        break;
      case kind::call: {
        const auto& c = marks.calls.at(m.call);
        if (m.call != calls++) out += "NUMBER?";
        out += c.name + (c.id.empty() ? "" : "#" + c.id) + said + (c.whole ? "" : "…");
        const bool ends = i + 1 < marks.list.size() && marks.list[i + 1].what == kind::end;
        if (ends != c.whole) out += "END?";
        break;
      }
    }
  }
  return out;
}

std::string read_pieces(const answer_setting& s, const std::vector<std::string_view>& pieces,
                        core::answer_marks* kept) {
  core::answer_reader reader(plan_of(s));
  std::string text;
  core::answer_marks marks;
  std::uint32_t n = 0;
  for (const auto piece : pieces) reader.take(n++, 0, piece, text, marks);
  const bool settled = reader.settled();
  const auto before = text.size() + marks.list.size();
  reader.end(n == 0 ? 0 : n - 1, {}, text, marks);
  if (settled && text.size() + marks.list.size() != before) return "NOT SETTLED";
  if (kept) *kept = marks;
  return shown(text, marks);
}

std::string read_whole(const answer_setting& s, std::string_view answer, core::answer_marks* kept) {
  return read_pieces(s, {answer}, kept);
}

std::string read_tokens(const answer_setting& s, std::string_view answer) {
  core::answer_reader reader(plan_of(s));
  std::string text;
  core::answer_marks marks;
  std::uint32_t n = 0;
  for (const auto id : s.words->encode(answer, {})) {
    const bool hidden = s.words->is_special(id);
    reader.take(n++, id, hidden ? std::string_view() : s.words->token_bytes(id), text, marks);
  }
  reader.end(n - 1, {}, text, marks);
  return shown(text, marks);
}

}  // namespace weir::tests
