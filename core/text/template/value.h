// value.h — a value of a template, with the meaning that Python gives it.
//
// Values are immutable, but for the members of a namespace. Lists and dicts nest at most `deepest_value`
// deep, and a namespace holds no object, so that values form no cycle.
//
// Thread safety: one rendering, one thread.
#pragma once

#include <boost/json/value.hpp>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/text/template/text.h"

namespace weir::core::jinja {

inline constexpr std::uint32_t deepest_value = 100;

class value;
struct list;
struct dict;
struct object;
using list_ptr = std::shared_ptr<const list>;
using dict_ptr = std::shared_ptr<const dict>;
using object_ptr = std::shared_ptr<object>;

// The value of a name to which nothing was assigned, and of a member that does not exist.
struct undefined {
  text_ptr what;  // "'x' is undefined"; null: no words
};
struct none {};

class value {
 public:
  value() = default;  // undefined
  value(undefined u) : data_(std::move(u)) {}
  value(none n) : data_(n) {}
  value(bool b) : data_(b) {}
  value(std::int64_t n) : data_(n) {}
  value(double d) : data_(d) {}
  value(text_ptr t) : data_(std::move(t)) {}
  value(list_ptr l) : data_(std::move(l)) {}
  value(dict_ptr d) : data_(std::move(d)) {}
  value(object_ptr o) : data_(std::move(o)) {}
  static value number(std::size_t n) { return value(static_cast<std::int64_t>(n)); }

  template <class T>
  const T* get() const noexcept {
    return std::get_if<T>(&data_);
  }
  bool is_undefined() const noexcept { return get<undefined>(); }
  bool is_none() const noexcept { return get<none>(); }
  const text* as_text() const noexcept { return get<text_ptr>() ? get<text_ptr>()->get() : nullptr; }
  const list* as_list() const noexcept { return get<list_ptr>() ? get<list_ptr>()->get() : nullptr; }
  const dict* as_dict() const noexcept { return get<dict_ptr>() ? get<dict_ptr>()->get() : nullptr; }
  object* as_object() const noexcept { return get<object_ptr>() ? get<object_ptr>()->get() : nullptr; }
  std::optional<std::int64_t> as_integer() const noexcept;  // a boolean is 0 or 1, as in Python
  std::optional<double> as_number() const noexcept;

  std::uint32_t depth() const noexcept;  // 0: no list and no dict
  bool has_object() const noexcept;      // it is an object or contains one

  bool truth() const noexcept;
  const char* type_name() const noexcept;  // Python's

 private:
  std::variant<undefined, none, bool, std::int64_t, double, text_ptr, list_ptr, dict_ptr, object_ptr> data_;
};

// Equality of Python: 1 == 1.0 == True, and members in any order.
bool equal(budget& b, const value& x, const value& y);
// Python's order of numbers, strings and lists. Fails for all others.
std::strong_ordering order(budget& b, const value& x, const value& y);

// A list, or a tuple.
struct list {
  std::vector<value> items;
  bool tuple = false;
  std::uint32_t depth = 1;
  bool has_object = false;
  held_memory memory;
  list(budget& b, std::vector<value> of, bool is_tuple);
};

// Members in the order in which they were inserted.
struct dict {
  std::vector<std::pair<value, value>> members;
  std::uint32_t depth = 1;
  bool has_object = false;
  // Keys that are texts and their places in `members`. Empty for a few members.
  std::map<std::string_view, std::size_t> places;
  held_memory memory;
  // A key that comes twice keeps its first place and has its last value.
  dict(budget& b, std::vector<std::pair<value, value>> of);
  const value* find(budget& b, std::string_view key) const;
  const value* find(budget& b, const value& key) const;
};

value make_list(budget& b, std::vector<value> items, bool tuple = false);
value make_dict(budget& b, std::vector<std::pair<value, value>> members);

// A value with behaviour: a namespace, a macro, the `loop` of a for statement, a function, a method of a
// value.
struct object {
  virtual ~object() = default;
  virtual const char* type_name() const noexcept = 0;
  virtual value member(budget&, std::string_view) const { return {}; }
  virtual bool callable() const noexcept { return false; }
};

// namespace(): the only value that a template can change.
struct namespace_object final : object {
  std::map<std::string, value, std::less<>> members;
  held_memory memory;
  explicit namespace_object(budget& b) : memory(b, sizeof *this) {}
  const char* type_name() const noexcept override { return "Namespace"; }
  value member(budget&, std::string_view name) const override;
  void set(std::string_view name, value v);
};

// The values of a client (`from_client`) or of the model. A known role of a message counts as template text:
// docs/templates.md says why.
value from_json(budget& b, const boost::json::value& v, bool from_client);

// What `{{ v }}` prints: Python's str().
void print(text_builder& out, const value& v);
void print_quoted(text_builder& out, const value& v);  // Python's repr()
text_ptr to_text(budget& b, const value& v);

// json.dumps().
struct json_style {
  std::optional<std::string> indent;
  std::optional<std::string> between, behind_key;  // separators; unset: Python's default
  bool ascii = false, sorted = false;
};
void print_json(text_builder& out, budget& b, const value& v, const json_style& style);

}  // namespace weir::core::jinja
