// reading.h — what the parsers of an answer share: the text that is not decided on, and the parts that were
// read from it.
//
// The text is a string in which a mark that is one token has the form of known_format. `decided`: the text
// before it was given, or left out. `at`: how far it was read.
//
// Only for core/text/answer. Thread safety: none; one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/text/answer/foreign_value.h"
#include "core/text/answer/marks.h"
#include "core/text/answer/parsing.h"
#include "core/text/answer/plan.h"

namespace weir::core {

inline constexpr char mark_byte = '\xFF';
inline constexpr std::string_view white_space = " \t\r\n";
inline constexpr std::size_t longest_name = 512;  // bytes of a name or an id

inline bool is_white(char c) { return white_space.find(c) != white_space.npos; }

void strip_white(std::string& s);  // at both ends

enum class fit : std::uint8_t {
  no,
  part,  // the text ends too early to say
  whole,
};

// Compares a spelling with the text at `at`. White space inside the spelling stands for any white space, also
// none. `end`: where the spelling ends in the text.
fit compare(std::string_view text, std::size_t at, std::string_view spelling, std::size_t& end);

// Takes the text of the member `input` out of JSON that comes in pieces.
class input_reader {
 public:
  void take(std::string_view json, std::string& out);

 private:
  enum class place : std::uint8_t { outside, name, colon, input, over } at_ = place::outside;
  bool escaped_ = false;
  std::string name_;
  string_reader text_;
};

class reading {
 public:
  explicit reading(std::shared_ptr<const answer_plan> p) : plan(std::move(p)) {}
  reading(const reading&) = delete;
  reading& operator=(const reading&) = delete;

  // --- the text

  const std::shared_ptr<const answer_plan> plan;
  std::string buffer;
  std::size_t decided = 0, at = 0;
  bool over = false;  // nothing follows

  bool has() const noexcept { return at < buffer.size(); }
  char next() const noexcept { return buffer[at]; }
  std::string_view ahead() const { return std::string_view(buffer).substr(at); }
  void skip_white() {
    while (has() && is_white(next())) ++at;
  }
  // All text up to `to` was given or left out.
  void decide(std::size_t to) { decided = at = to; }
  void decide() { decided = at; }
  // Takes a spelling behind white space: `at` moves behind the white space, and behind the spelling if it is
  // whole. The empty spelling is always whole.
  fit take(std::string_view spelling);
  // Takes a JSON string of at most longest_name bytes behind white space.
  fit take_string(std::string& out);
  // Takes text of at most longest_name bytes up to the first of these spellings, which stays. no: another
  // character of `forbidden` comes before.
  fit take_until(std::string_view spelling, std::string_view other, std::string_view forbidden,
                 std::string& out);
  // Gives back memory of decided text. Moves all places in the text; `scan` is one of the caller's.
  void compact(std::size_t& scan);

  // Waits for more text. False: nothing follows.
  struct more_text {
    reading& of;
    bool await_ready() const noexcept { return of.over; }
    void await_suspend(std::coroutine_handle<> h) const noexcept { of.waits_ = h; }
    bool await_resume() const noexcept { return !of.over; }
  };
  more_text more() noexcept { return {*this}; }
  // Begins the outermost parser, and lets the parser that waits go on.
  void start(parsing& outermost) { outermost.start(loop_); }
  void go_on();

  // --- what was read

  // Where parts go, with token number `token`.
  void give_to(std::string& text, answer_marks& marks, std::uint32_t token) {
    text_ = &text;
    marks_ = &marks;
    token_ = token;
  }
  // Gives text or reasoning, without white space directly behind a mark. `show_hidden`: marks that are
  // special tokens have text.
  void give(part_kind what, std::string_view encoded, bool show_hidden = false);
  void begin_call(std::string name, std::string id);
  void give_arguments(std::string_view json);
  // The same for text with marks, each as its spelling.
  void give_encoded_arguments(std::string_view encoded);
  void end_call();  // the call is whole
  void end_part();  // reasoning or text has ended
  bool call_begun() const noexcept { return begun_; }
  void drop_call() { begun_ = false, part_.reset(); }  // it is not whole, and its text ends
  std::uint32_t calls() const noexcept { return calls_; }
  const tool_definition* tool_of(std::string_view name) const;
  const tool_definition* tool() const noexcept { return tool_; }  // of the call; null: there is none
  void warn(std::string_view sentence) { marks_->warnings.emplace_back(sentence); }
  bool skips_white = false;  // white space that comes next stands directly behind a mark
  // Neither text nor a call was given; reasoning may have been.
  bool said_nothing() const noexcept { return !said_text_ && calls_ == 0; }

  // From here on what is given is held, until it is known whether it counts.
  void hold() { holds_ = true; }
  bool holds() const noexcept { return holds_; }
  void keep_held();
  void drop_held();

  std::string spelled(std::string_view encoded, bool show_hidden) const;

 private:
  void mark(answer_mark::kind what, std::uint32_t call);
  std::string& text() { return holds_ ? held_text_ : *text_; }
  answer_marks& marks() { return holds_ ? held_marks_ : *marks_; }

  parser_loop loop_;
  std::coroutine_handle<> waits_;  // for text; null: no parser does
  std::string* text_ = nullptr;
  answer_marks* marks_ = nullptr;
  std::uint32_t token_ = 0, calls_ = 0, parts_ = 0;
  std::optional<part_kind> part_;
  bool begun_ = false, holds_ = false, said_text_ = false;
  std::string held_text_;
  answer_marks held_marks_;
  const tool_definition* tool_ = nullptr;
  input_reader input_;
};

}  // namespace weir::core
