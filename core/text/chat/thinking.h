// thinking.h — splits the text of an answer, while it comes, into what the model thinks and what it says. For
// answers of foreign servers, of whose models nothing is known: of a model here, core/text/answer/reader.h
// reads the parts.
//
// Thoughts stand between <think> and </think>, or [THINK] and [/THINK]. A marker may be cut anywhere between
// two pieces of text. The markers themselves belong to neither part.
//
// Thread safety: none; one owner.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace weir::core {

class thinking_splitter {
 public:
  // Called with parts that are not empty, in their order.
  using part = std::function<void(std::string_view text, bool thought)>;

  // Takes a piece of the answer. Text that could be the beginning of a marker waits for the next piece.
  void take(std::string_view text, const part& show);
  // The answer has ended: what waits is text.
  void end(const part& show);

 private:
  void emit(std::size_t n, const part& show);

  std::string waiting_;
  bool thinks_ = false;
  bool fresh_ = false;  // line ends directly behind a marker are left out
};

}  // namespace weir::core
