// ignored_fields.h — the unknown fields of a request: they change nothing, and the answer names them.
//
// A request may have any number of them. The names that are kept, and their length, are bounded.
//
// Thread safety: a value; one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/grammar/rules.h"

namespace weir::net {

class ignored_fields {
 public:
  static constexpr std::size_t most_names = 16;

  void add(std::string_view name);
  bool empty() const noexcept { return in_all_ == 0; }
  // The names, shortened; if there are more than most_names, the next entry says how many.
  std::vector<std::string> told() const;
  // The same as `warnings` of an answer.
  std::vector<core::grammar::warning> warnings() const;
  // invalid_param with the name of the first, where unknown fields are not allowed. REQUIRES: not empty().
  core::error refusal() const;

 private:
  std::vector<std::string> names_;
  std::size_t in_all_ = 0;
};

}  // namespace weir::net
