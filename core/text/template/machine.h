// machine.h — the state of one rendering: names, output, budget; and what expressions and statements can do
// with values.
//
// Thread safety: one rendering, one thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/template/value.h"

namespace weir::core::jinja {

using symbol = std::uint32_t;  // a name of the template, by its place in the program's table

// Names with their values: those of the template, of one turn of a loop, of one call of a macro.
struct frame {
  std::shared_ptr<frame> parent;  // null: the outermost frame
  std::vector<std::pair<symbol, value>> names;

  void set(symbol name, value v);
  const value* find_here(symbol name) const noexcept;
};
using frame_ptr = std::shared_ptr<frame>;

struct arguments {
  std::vector<value> positional;
  std::vector<std::pair<std::string, value>> named;
};

class machine {
 public:
  machine(const limits& most, const std::vector<std::string>& symbols, std::chrono::local_seconds now)
      : memory(most), symbols_(symbols), now_(now), here_(std::make_shared<frame>()) {}
  machine(const machine&) = delete;

  budget memory;  // first: every value dies before it

  value make_text(std::string_view bytes) { return jinja::make_text(memory, bytes); }
  std::string_view name_of(symbol s) const { return symbols_[s]; }
  std::chrono::local_seconds now() const noexcept { return now_; }

  // Undefined where no frame has the name.
  value look_up(symbol name);
  void set(symbol name, value v) {
    memory.step(here_->names.size() / 32);
    here_->set(name, std::move(v));
  }
  const frame_ptr& here() const noexcept { return here_; }

  // Names that are set from now on are gone when the object dies.
  class scope {
   public:
    explicit scope(machine& m) : scope(m, m.here_) {}
    scope(machine& m, frame_ptr parent) : m_(m), before_(m.here_) { begin(std::move(parent)); }
    scope(const scope&) = delete;
    ~scope() { m_.here_ = std::move(before_); }
    // Forgets the names.
    void renew() { begin(m_.here_->parent); }

   private:
    void begin(frame_ptr parent) {
      m_.here_ = std::make_shared<frame>();
      m_.here_->parent = std::move(parent);
    }
    machine& m_;
    frame_ptr before_;
  };

  text_builder& out() noexcept { return *out_; }
  // What is printed while the object lives goes into `into`.
  class capture {
   public:
    capture(machine& m, text_builder& into) : m_(m), before_(std::exchange(m.out_, &into)) {}
    capture(const capture&) = delete;
    ~capture() { m_.out_ = before_; }

   private:
    machine& m_;
    text_builder* before_;
  };

 private:
  const std::vector<std::string>& symbols_;
  const std::chrono::local_seconds now_;
  frame_ptr here_;
  text_builder* out_ = nullptr;
};

// A value that can be called.
struct callable_object : object {
  bool callable() const noexcept final { return true; }
  virtual value call(machine& m, arguments& a) = 0;
};

// `v.name`: a method or other attribute, else the item with that key.
value member_of(machine& m, const value& v, std::string_view name);
// `v[key]`: the item, else for a string the attribute.
value item_of(machine& m, const value& v, const value& key);
value slice_of(machine& m, const value& v, const value& from, const value& to, const value& step);
value call(machine& m, const value& f, arguments& a);

// What a for statement goes over: items, keys, or characters. Fails for a value that has none.
std::vector<value> items_of(machine& m, const value& v);
std::size_t length_of(machine& m, const value& v);                 // fails for a value that has none
bool contains(machine& m, const value& whole, const value& part);  // `part in whole`

value add(machine& m, const value& x, const value& y);
value calculate(machine& m, std::string_view op, const value& x, const value& y);  // - * / // % **

// Python's `format % values` and `format.format(…)`.
value percent_format(machine& m, const text& format, const std::vector<value>& with);
value brace_format(machine& m, const text& format, const arguments& a);

// `most`: how many occurrences are replaced; negative: all.
value replaced(machine& m, const text& t, const text& from, const text& to, std::int64_t most);

// A method of a string, list or dict. call_method() REQUIRES: has_method().
bool has_method(const value& self, std::string_view name);
value call_method(machine& m, const value& self, std::string_view name, arguments& a);

bool has_filter(std::string_view name);
value run_filter(machine& m, std::string_view name, const value& subject, arguments& a);
bool has_test(std::string_view name);
bool run_test(machine& m, std::string_view name, const value& subject, arguments& a);

// range, namespace, dict, cycler, joiner, raise_exception, strftime_now. Undefined: there is none of this
// name.
value global_function(machine& m, std::string_view name);

}  // namespace weir::core::jinja
