// parameters.h — reads the arguments of a function, filter, test or method by place and name.
//
// Thread safety: one rendering, one thread.
#pragma once

#include <algorithm>

#include "core/text/template/machine.h"

namespace weir::core::jinja {

// Each parameter is asked for once, in the order of the signature. end() refuses what was not asked for.
class parameters {
 public:
  parameters(machine& m, std::string_view function, arguments& a) : m_(m), function_(function), a_(a) {}

  // nullptr: not given.
  const value* find(std::string_view name) {
    if (next_ < a_.positional.size()) return &a_.positional[next_++];
    ++next_;
    m_.memory.step(a_.named.size() / 8);
    const auto at = std::ranges::find(a_.named, name, &std::pair<std::string, value>::first);
    if (at == a_.named.end()) return nullptr;
    taken_.push_back(static_cast<std::size_t>(at - a_.named.begin()));
    return &at->second;
  }
  const value& need(std::string_view name) {
    if (const value* v = find(name)) return *v;
    fail("{}() needs '{}'", function_, name);
  }
  bool flag(std::string_view name, bool otherwise) {
    const value* v = find(name);
    return v ? v->truth() : otherwise;
  }
  std::optional<std::int64_t> integer(std::string_view name) {
    const value* v = find(name);
    if (!v || v->is_none()) return std::nullopt;
    if (!v->as_integer()) fail("{}(): '{}' is a {}, not an int", function_, name, v->type_name());
    return *v->as_integer();
  }
  // null: not given, or none.
  text_ptr text_or_null(std::string_view name) {
    const value* v = find(name);
    if (!v || v->is_none()) return nullptr;
    if (!v->as_text()) fail("{}(): '{}' is a {}, not a str", function_, name, v->type_name());
    return *v->get<text_ptr>();
  }
  text_ptr need_text(std::string_view name) {
    const value& v = need(name);
    if (!v.as_text()) fail("{}(): '{}' is a {}, not a str", function_, name, v.type_name());
    return *v.get<text_ptr>();
  }
  void end() const {
    if (next_ < a_.positional.size())
      fail("{}() takes {} arguments, not {}", function_, next_, a_.positional.size());
    for (std::size_t i = 0; i < a_.named.size(); ++i)
      if (std::ranges::find(taken_, i) == taken_.end())
        fail("{}() has no parameter '{}'", function_, a_.named[i].first);
  }
  machine& m() const noexcept { return m_; }

 private:
  machine& m_;
  const std::string_view function_;
  arguments& a_;
  std::size_t next_ = 0;
  std::vector<std::size_t> taken_;
};

}  // namespace weir::core::jinja
