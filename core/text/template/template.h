// template.h — an interpreter for chat templates: programs in the Jinja language that make one text of a
// conversation.
//
// The language is that of Python's Jinja 3.1 (https://jinja.palletsprojects.com/en/3.1.x/templates/) as
// Hugging Face's transformers sets it up: immutable sandbox, trim_blocks, lstrip_blocks, loop controls,
// `generation` blocks that do nothing, raise_exception(), strftime_now(), and tojson as
// json.dumps(ensure_ascii=False). `include`, `import`, `extends` and `block` are refused by name. Integers
// have 64 bits.
//
// A template is foreign code: it reaches nothing but its variables, and `limits` bounds what it uses.
//
// Thread safety: a program is immutable and shared; any thread.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/turn.h"

namespace weir::core::jinja {

// What one rendering may use. The defaults let any real conversation through, and end the worst template in
// less than a second.
struct limits {
  std::uint64_t steps = 8'000'000;        // evaluations, allocations, bytes copied and searched: budget.h
  std::uint32_t depth = 500;              // expressions, statements and calls inside one another
  std::size_t memory_bytes = 128u << 20;  // values that are alive at a time
  std::size_t output_bytes = 32u << 20;   // the rendered text
  // Looked at every few thousand steps. null: nobody shares the thread, nobody cancels, and there is no
  // deadline
  turn* at = nullptr;
  time_point deadline = time_point::max();  // by the turn's clock
};

// A range of bytes.
struct span {
  std::size_t begin = 0, end = 0;
  bool operator==(const span&) const = default;
};

struct rendering {
  std::string text;
  // The bytes of `text` that came from variables::content: sorted, disjoint, not empty. All others came from
  // the template or from variables::trusted.
  std::vector<span> content;
};

struct variables {
  const boost::json::object& content;  // of the client: messages, tools, …
  const boost::json::object& trusted;  // of the model: bos_token, …; they hide equal names in `content`
  std::chrono::local_seconds now;      // for strftime_now()
};

class program {
 public:
  // Errors: bad_file, with the line and the reason.
  static result<std::shared_ptr<const program>> compile(std::string_view source);
  // Errors: invalid_param with the template's own message, if it called raise_exception(). If it
  // fails otherwise, with the line and the reason: invalid_param if a limit ended it, else bad_file.
  result<rendering> render(const variables& given, const limits& most = {}) const;

  ~program();

 private:
  struct tree;
  explicit program(std::unique_ptr<const tree> t);
  std::unique_ptr<const tree> tree_;
};

}  // namespace weir::core::jinja
