#include "core/text/answer/reading.h"

#include <algorithm>

#include "core/text/answer/json_scan.h"

namespace weir::core {

void strip_white(std::string& s) {
  while (!s.empty() && is_white(s.back())) s.pop_back();
  s.erase(0, std::min(s.find_first_not_of(white_space), s.size()));
}

namespace {

// White space that a spelling may have where it has some: a bound, so that no comparison takes long.
constexpr std::size_t most_white = 64;

}  // namespace

fit compare(std::string_view text, std::size_t at, std::string_view spelling, std::size_t& end) {
  for (std::size_t i = 0; i < spelling.size();) {
    if (is_white(spelling[i])) {
      while (i < spelling.size() && is_white(spelling[i])) ++i;
      const std::size_t most = at + most_white;
      while (at < text.size() && is_white(text[at]) && at < most) ++at;
      continue;
    }
    if (at >= text.size()) return fit::part;
    if (text[at++] != spelling[i++]) return fit::no;
  }
  end = at;
  return fit::whole;
}

void input_reader::take(std::string_view json, std::string& out) {
  for (const char c : json) {
    switch (at_) {
      case place::outside:
        if (c == '"') at_ = place::name;
        break;
      case place::name:
        if (c == '"')
          at_ = place::colon;
        else
          name_ += c;
        break;
      case place::colon:
        if (c == '"' && name_ == "input") at_ = place::input;
        break;
      case place::input:
        if (c == '"' && !escaped_) {
          at_ = place::over;
          break;
        }
        escaped_ = c == '\\' && !escaped_;
        text_.take(c, out);
        break;
      case place::over:
        break;
    }
  }
}

fit reading::take(std::string_view spelling) {
  if (spelling.empty()) return fit::whole;
  std::size_t end = 0;
  skip_white();
  const fit is = compare(buffer, at, spelling, end);
  if (is == fit::part) return over ? fit::no : fit::part;
  if (is == fit::whole) at = end;
  return is;
}

fit reading::take_string(std::string& out) {
  const fit unfinished = over ? fit::no : fit::part;
  skip_white();
  const std::size_t from = at;
  if (from == buffer.size()) return unfinished;
  if (buffer[from] != '"') return fit::no;
  json_scan scan;
  for (std::size_t end = from; end < buffer.size(); ++end) {
    if (buffer[end] == mark_byte || end - from > longest_name) return fit::no;
    const auto is = scan.take(static_cast<unsigned char>(buffer[end]));
    if (is == json_scan::status::bad) return fit::no;
    if (is != json_scan::status::done) continue;
    out = unescaped(std::string_view(buffer).substr(from + 1, end - from - 1));
    at = end + 1;
    return fit::whole;
  }
  return unfinished;
}

fit reading::take_until(std::string_view spelling, std::string_view other, std::string_view forbidden,
                        std::string& out) {
  for (std::size_t end = at; end < buffer.size(); ++end) {
    bool could = false;
    for (const auto s : {spelling, other}) {
      std::size_t behind = 0;
      const fit is = s.empty() ? fit::no : compare(buffer, end, s, behind);
      if (is == fit::whole) {
        out.assign(buffer, at, end - at);
        at = end;
        return fit::whole;
      }
      could |= is == fit::part;
    }
    if (could) break;
    if (end - at > longest_name || buffer[end] == mark_byte || forbidden.find(buffer[end]) != forbidden.npos)
      return fit::no;
  }
  return over ? fit::no : fit::part;
}

void reading::compact(std::size_t& scan) {
  constexpr std::size_t much = 4096;
  if (decided < much || decided * 2 < buffer.size()) return;
  buffer.erase(0, decided);
  at -= decided;
  scan -= std::min(scan, decided);
  decided = 0;
}

void reading::go_on() {
  loop_.next(std::exchange(waits_, nullptr));
  loop_.run();
}

std::string reading::spelled(std::string_view encoded, bool show_hidden) const {
  std::string out;
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    if (encoded[i] != mark_byte) {
      out += encoded[i];
      continue;
    }
    const auto& m = plan->format->tokens()[static_cast<unsigned char>(encoded[++i]) - 0x80u];
    if (show_hidden || !m.hidden) out += m.spelling;
  }
  return out;
}

void reading::mark(answer_mark::kind what, std::uint32_t call) {
  answer_mark m;
  m.token = token_;
  m.offset = static_cast<std::uint32_t>(text().size());
  m.call = call;
  m.what = what;
  m.part = what == answer_mark::kind::end ? parts_ - 1 : parts_++;
  marks().list.push_back(m);
}

void reading::give(part_kind what, std::string_view encoded, bool show_hidden) {
  if (skips_white)
    while (!encoded.empty() && is_white(encoded.front())) encoded.remove_prefix(1);
  if (encoded.empty()) return;
  const bool plain = encoded.find(mark_byte) == encoded.npos;
  const std::string made = plain ? std::string() : spelled(encoded, show_hidden);
  const std::string_view shown = plain ? encoded : std::string_view(made);
  if (shown.empty()) return;
  skips_white = false;
  said_text_ |= what == part_kind::text;
  if (part_ != what) {
    end_part();
    mark(what == part_kind::text ? answer_mark::kind::text : answer_mark::kind::reasoning, 0);
    part_ = what;
  }
  text() += shown;
}

const tool_definition* reading::tool_of(std::string_view name) const {
  const auto found = std::ranges::find(plan->tools, name, &tool_definition::name);
  return found == plan->tools.end() ? nullptr : &*found;
}

void reading::begin_call(std::string name, std::string id) {
  end_part();
  tool_ = tool_of(name);
  input_ = {};
  mark(answer_mark::kind::call, calls_++);
  part_ = part_kind::call;
  begun_ = true;
  answer_call call;
  call.id = std::move(id);
  call.name = std::move(name);
  call.custom = tool_ && tool_->what == tool_definition::kind::custom;
  marks().calls.push_back(std::move(call));
}

void reading::give_arguments(std::string_view json) {
  if (marks().calls.back().custom)
    input_.take(json, text());
  else
    text() += json;
}

void reading::give_encoded_arguments(std::string_view encoded) {
  if (encoded.find(mark_byte) == encoded.npos) return give_arguments(encoded);
  give_arguments(spelled(encoded, true));
}

void reading::end_call() {
  marks().calls.back().whole = true;
  end_part();
  begun_ = false;
}

void reading::end_part() {
  if (part_ == part_kind::reasoning) mark(answer_mark::kind::end, 0);
  if (part_ == part_kind::call && begun_) mark(answer_mark::kind::end, calls_ - 1);
  part_.reset();
}

void reading::keep_held() {
  holds_ = false;
  const auto shift = static_cast<std::uint32_t>(text_->size());
  for (auto m : held_marks_.list) {
    m.offset += shift;
    m.token = token_;
    marks_->list.push_back(m);
  }
  for (auto& c : held_marks_.calls) marks_->calls.push_back(std::move(c));
  *text_ += held_text_;
  held_text_.clear();
  held_marks_ = {};
}

void reading::drop_held() {
  holds_ = false;
  calls_ -= static_cast<std::uint32_t>(held_marks_.calls.size());
  parts_ -= static_cast<std::uint32_t>(held_marks_.calls.size());
  held_text_.clear();
  held_marks_ = {};
  drop_call();
}

}  // namespace weir::core
