// text.h — a string of a template that knows which of its bytes came from the client.
//
// Thread safety: one rendering, one thread. A constant of a program: any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/template/budget.h"

namespace weir::core::jinja {

// Immutable once it is in a value.
struct text {
  std::string bytes;          // valid UTF-8
  std::vector<span> content;  // what came from the client: sorted, disjoint, not empty
  // Whether the text is Python's Markup, which the filters `safe` and `escape` make. A text that is added to
  // a Markup is escaped.
  bool markup = false;
  held_memory memory;

  explicit text(std::string constant) : bytes(std::move(constant)) {}
  text(budget& b, std::string s, std::vector<span> from_client, bool is_markup)
      : bytes(std::move(s)),
        content(std::move(from_client)),
        markup(is_markup),
        memory(b, sizeof(text) + bytes.size() + content.size() * sizeof(span)) {}
  bool ascii() const noexcept;
};
using text_ptr = std::shared_ptr<const text>;

// Builds a text. Every append charges the budget.
class text_builder {
 public:
  explicit text_builder(budget& b) : budget_(b) {}
  text_builder(const text_builder&) = delete;
  ~text_builder() { budget_.give_back(charged_); }

  void add(std::string_view bytes, bool from_client = false);
  void add(const text& t) { add_part(t, 0, t.bytes.size()); }
  void add_part(const text& t, std::size_t begin, std::size_t end);  // bytes [begin, end) of t
  std::size_t size() const noexcept { return bytes_.size(); }
  // Bounds the size by limits::output_bytes.
  void bound_output() { most_ = budget_.most_output(); }

  text_ptr finish(bool markup = false);
  rendering finish_output() && { return {std::move(bytes_), std::move(content_)}; }

 private:
  void mark(std::size_t begin, std::size_t end);
  void reserve_more(std::size_t n);

  budget& budget_;
  std::string bytes_;
  std::vector<span> content_;
  std::size_t most_ = SIZE_MAX;
  std::size_t charged_ = 0;
};

// A text in which every byte comes from the template, or every byte from the client.
text_ptr make_text(budget& b, std::string_view bytes, bool from_client = false);
// Bytes [begin, end) of t, and Markup if t is.
text_ptr part_of(budget& b, const text_ptr& t, std::size_t begin, std::size_t end);

// The text as Markup, with & < > " ' escaped unless it was Markup.
text_ptr escaped(budget& b, const text& t);

// Sizes and positions of the language count characters; positions in this file count bytes.
std::size_t count_characters(std::string_view utf8) noexcept;
// The byte at which character n begins; the size of the text if it has no such character.
std::size_t byte_of(std::string_view utf8, std::size_t n) noexcept;

// The first place of `part` in `whole` at `from` or behind it; the last place at `from` or before it. npos:
// there is none. Charges the bytes that are looked at.
std::size_t first_place(budget& b, std::string_view whole, std::string_view part, std::size_t from = 0);
std::size_t last_place(budget& b, std::string_view whole, std::string_view part,
                       std::size_t from = std::string_view::npos);

// Whether Python's str methods call a character white space.
bool is_space(char32_t c) noexcept;
std::size_t leading_space(std::string_view utf8) noexcept;   // bytes
std::size_t trailing_space(std::string_view utf8) noexcept;  // bytes

// The same text in another case. What replaces a byte of the client is the client's, too.
enum class letter_case { upper, lower, title, capital, swapped };
text_ptr in_case(budget& b, const text& t, letter_case to);

}  // namespace weir::core::jinja
