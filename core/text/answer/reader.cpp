#include "core/text/answer/reader.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/text/answer/call_parsers.h"

namespace weir::core {
namespace {

constexpr std::size_t longest_white = 256;  // in front of a mark

enum class opener : std::uint8_t { reasoning, section, call, other_call, message_end };
struct opening {
  std::string spelling;
  opener what;
};

}  // namespace

// The outermost parser: text, reasoning, calls and messages, one after the other.
struct answer_reader::state {
  explicit state(std::shared_ptr<const answer_plan> p);

  parsing answer();
  parsing text();    // text or reasoning, up to an opening
  parsing header();  // of a message
  parsing next_message();
  parsing calls(opener how);
  void not_a_call(std::size_t end);
  // Where an opening is next, or could be; npos: nowhere. `which`: null where there is only a beginning.
  struct found {
    std::size_t place = std::string::npos, end = 0;
    const opening* which = nullptr;
  };
  found find(const std::vector<opening>& all, std::size_t from) const;
  const answer_format& format() const { return in.plan->format->format(); }

  reading in;
  call_parsers parsers{in};
  std::vector<opening> in_text, in_reasoning;
  std::string message, start, channel;
  bool reasons = false;   // reasoning is being read
  bool may_call = false;  // calls without marks may come
  std::size_t scan = 0;   // no opening begins before it
  parsing running;
};

answer_reader::state::state(std::shared_ptr<const answer_plan> p) : in(std::move(p)) {
  const auto& known = *in.plan->format;
  const auto& f = format();
  const auto& c = f.calls;
  const bool reads_calls = !in.plan->tools.empty() && f.has_calls();
  const auto add = [&](std::vector<opening>& to, std::string_view spelling, opener what) {
    if (std::string made = known.compared(spelling); !made.empty()) to.push_back({std::move(made), what});
  };
  if (in.plan->separate_reasoning) {
    add(in_text, f.reasoning.open, opener::reasoning);
    add(in_reasoning, f.reasoning.close, opener::reasoning);
  }
  if (reads_calls && c.how != call_format::kind::harmony) {
    const bool section = !c.section_open.empty();
    for (auto* to : {&in_text, &in_reasoning})
      add(*to, section ? c.section_open : c.open, section ? opener::section : opener::call);
    add(in_text, c.open_too, opener::other_call);
  }
  may_call = reads_calls && c.bare;
  if (f.messages != envelope::none) {
    message = known.compared("<|message|>");
    start = known.compared("<|start|>");
    channel = known.compared("<|channel|>");
    for (const auto word : envelope_words(f.messages)) {
      if (word == "<|message|>" || word == "<|channel|>" || word == "<|constrain|>") continue;
      add(in_text, word, opener::message_end);
      add(in_reasoning, word, opener::message_end);
    }
  } else if (in.plan->begins_in_reasoning && in.plan->separate_reasoning) {
    reasons = in.skips_white = true;
  }
  running = answer();
}

parsing answer_reader::state::answer() {
  const bool messages = format().messages != envelope::none;
  if (messages) co_await header();
  while (!in.over || in.decided < in.buffer.size()) co_await text();
  co_return true;
}

answer_reader::state::found answer_reader::state::find(const std::vector<opening>& all,
                                                       std::size_t from) const {
  std::array<char, 16> first{};
  std::size_t n = 0;
  for (const auto& o : all)
    if (n < first.size() &&
        std::find(first.begin(), first.begin() + n, o.spelling.front()) == first.begin() + n)
      first[n++] = o.spelling.front();
  const std::string_view any(first.data(), n), text = in.buffer;
  for (auto at = text.find_first_of(any, from); at != text.npos; at = text.find_first_of(any, at + 1)) {
    found next;
    for (const auto& o : all) {
      std::size_t end = 0;
      const fit is = compare(text, at, o.spelling, end);
      if (is == fit::whole) {
        next.place = at;
        next.end = end;
        next.which = &o;
        return next;
      }
      if (is == fit::part && !in.over) next.place = at;
    }
    if (next.place != text.npos) return next;
  }
  return {};
}

// Gives text up to the next opening, and reads what the opening begins.
parsing answer_reader::state::text() {
  if (may_call && !reasons && in.said_nothing()) {
    for (in.skip_white(); !in.has() && !in.over; in.skip_white()) co_await in.more();
    const bool object = in.has() && in.next() == '{';
    const std::size_t begin = in.at;
    in.at = in.decided;
    if (object) {
      in.at = begin;
      may_call = false;
      const bool read = co_await parsers.bare_calls();
      if (read) {
        in.skips_white = true;
      } else {
        in.at = in.decided;
      }
      scan = in.decided;
      co_return true;
    }
  }
  const auto next = find(reasons ? in_reasoning : in_text, std::max(scan, in.decided));
  std::size_t end = std::min(next.place, in.buffer.size());
  scan = end;
  // White space in front of a mark belongs to the mark, as far as it is not long.
  const bool last = in.over && !next.which;
  const std::size_t least = std::max(in.decided, end - std::min(end, longest_white));
  while (!last && end > least && is_white(in.buffer[end - 1])) --end;
  const auto what = reasons ? part_kind::reasoning : part_kind::text;
  in.give(what, std::string_view(in.buffer).substr(in.decided, end - in.decided));
  in.decide(end);
  if (!next.which) {
    if (!last) co_await in.more();
    co_return true;
  }
  const opener how = next.which->what;
  if (how == opener::reasoning) {
    if (reasons) in.end_part();
    reasons = !reasons;
    in.skips_white = true;
    in.decide(next.end);
    co_return true;
  }
  if (how == opener::message_end) {
    in.end_part();
    in.decide(next.which->spelling == start ? next.place : next.end);
    co_return co_await next_message();
  }
  in.at = next.end;
  const std::size_t opening_bytes = next.end - in.decided;
  const std::uint32_t before = in.calls();
  co_await calls(how);
  if (in.calls() == before) {
    not_a_call(in.decided + opening_bytes);
    co_return true;
  }
  reasons = false;
  scan = in.decided;
  in.skips_white = !in.call_begun() || in.over;
  if (!in.call_begun()) co_return true;
  in.drop_call();  // its arguments end here
  if (!in.over || in.decided < in.buffer.size())
    in.warn("a call was left in the middle; what follows is text");
  co_return true;
}

parsing answer_reader::state::calls(opener how) {
  if (how == opener::section) co_return co_await parsers.section();
  if (how == opener::other_call) {
    for (in.skip_white(); !in.has() && !in.over; in.skip_white()) co_await in.more();
    co_return co_await parsers.bare_calls();
  }
  co_return co_await parsers.call();
}

// What looked like a call is text, with its opening.
void answer_reader::state::not_a_call(std::size_t end) {
  in.warn("the opening of a call has no call behind it, and is text");
  in.give(reasons ? part_kind::reasoning : part_kind::text,
          std::string_view(in.buffer).substr(in.decided, end - in.decided), true);
  in.decide(end);
  scan = end;
}

// Behind the end of a message: <|start|>assistant and a header.
parsing answer_reader::state::next_message() {
  reasons = false;
  fit starts = in.take(start), named = fit::part;
  for (; starts == fit::part; starts = in.take(start)) co_await in.more();
  if (starts == fit::whole) {
    in.decide();  // also where somebody else's message begins
    while ((named = in.take("assistant")) == fit::part) co_await in.more();
  }
  in.decide(named == fit::whole ? in.at : in.decided);
  in.skips_white = true;
  scan = in.decided;
  if (named == fit::whole) co_return co_await header();
  co_return true;
}

// A header and, where it is for a tool of gpt-oss, the call behind it. Text that is no header is the
// answer's.
parsing answer_reader::state::header() {
  const bool harmony = format().messages == envelope::harmony;
  const std::vector<opening> until = {{message, opener::message_end}};
  found next;
  for (;;) {
    std::size_t begin = in.decided, end = 0;
    while (begin < in.buffer.size() && is_white(in.buffer[begin])) ++begin;
    const auto could = [&](std::string_view s) {
      return begin == in.buffer.size() || compare(in.buffer, begin, s, end) != fit::no;
    };
    next = find(until, in.decided);
    const bool is_header = could("to=") || could(message) || (harmony && could(channel));
    const bool too_long = !next.which && in.buffer.size() - in.decided > longest_name;
    if (!is_header || too_long || (in.over && !next.which)) {
      in.at = scan = in.decided;
      co_return true;
    }
    if (next.which) break;
    co_await in.more();
  }
  const auto header =
      in.spelled(std::string_view(in.buffer).substr(in.decided, next.place - in.decided), true);
  in.decide(next.end);
  scan = next.end;
  std::string to;
  if (const auto from = header.find("to="); from != header.npos) {
    const auto end = std::min(header.find_first_of(" <\n", from), header.size());
    to = header.substr(from + 3, end - from - 3);
  }
  const bool for_user = to.empty() || to == "user";
  if (harmony) {
    reasons = for_user && header.find("<|channel|>analysis") != header.npos && in.plan->separate_reasoning;
    if (for_user || in.plan->tools.empty()) co_return true;
    constexpr std::string_view functions = "functions.";
    if (to.starts_with(functions)) to.erase(0, functions.size());
    in.begin_call(std::move(to), {});
    const bool whole = co_await parsers.arguments();
    if (whole) {
      in.end_call();
      in.decide();
    } else {
      in.drop_call();
      in.at = in.decided;
      if (!in.over || in.decided < in.buffer.size())
        in.warn("a call's arguments are no JSON; the rest is text");
    }
    scan = in.decided;
    in.skips_white = whole;
    co_return true;
  }
  reasons = to == "self" && in.plan->separate_reasoning;
  co_return true;
}

answer_reader::answer_reader(std::shared_ptr<const answer_plan> plan)
    : s_(std::make_unique<state>(std::move(plan))) {
  s_->in.start(s_->running);
}
answer_reader::~answer_reader() = default;
answer_reader::answer_reader(answer_reader&&) noexcept = default;
answer_reader& answer_reader::operator=(answer_reader&&) noexcept = default;

void answer_reader::take(std::uint32_t token, token_id id, std::string_view characters, std::string& text,
                         answer_marks& marks) {
  auto& in = s_->in;
  in.compact(s_->scan);
  const int mark = in.plan->format->mark_of(id);
  if (mark >= 0) {
    const auto& spelling = in.plan->format->tokens()[static_cast<std::size_t>(mark)].spelling;
    if (characters.ends_with(spelling)) characters.remove_suffix(spelling.size());
  }
  in.buffer += characters;
  if (mark >= 0) known_format::append_mark(in.buffer, mark);
  in.give_to(text, marks, token);
  in.go_on();
}

bool answer_reader::settled() const noexcept {
  return s_->in.decided == s_->in.buffer.size() && !s_->in.holds();
}

void answer_reader::end(std::uint32_t token, std::string_view characters, std::string& text,
                        answer_marks& marks) {
  s_->in.buffer += characters;
  s_->in.give_to(text, marks, token);
  s_->in.over = true;
  s_->in.go_on();
}

}  // namespace weir::core
