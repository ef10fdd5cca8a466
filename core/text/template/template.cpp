#include "core/text/template/template.h"

#include "core/text/template/tree.h"

namespace weir::core::jinja {

void frame::set(symbol name, value v) {
  for (auto& [n, old] : names)
    if (n == name) {
      old = std::move(v);
      return;
    }
  names.emplace_back(name, std::move(v));
}

const value* frame::find_here(symbol name) const noexcept {
  for (const auto& [n, v] : names)
    if (n == name) return &v;
  return nullptr;
}

value machine::look_up(symbol name) {
  std::size_t seen = 0;
  const value* found = nullptr;
  for (const frame* f = here_.get(); f && !found; f = f->parent.get()) {
    found = f->find_here(name);
    seen += 1 + f->names.size();
  }
  memory.step(seen / 32);
  if (found) return *found;
  return undefined{jinja::make_text(memory, fmt::format("'{}' is undefined", symbols_[name]))};
}

struct program::tree {
  parsed source;
};

program::program(std::unique_ptr<const tree> t) : tree_(std::move(t)) {}
program::~program() = default;

result<std::shared_ptr<const program>> program::compile(std::string_view source) {
  try {
    auto t = std::make_unique<tree>();
    t->source = parse(source);
    return std::shared_ptr<const program>(new program(std::move(t)));
  } catch (const failure& f) {
    return make_error(errc::bad_file, "line {}: {}", f.line, f.message);
  }
}

namespace {

// Gives each name of the template its value, as far as there is one from outside.
void set_names(machine& m, const std::vector<std::string>& symbols, const variables& given) {
  for (symbol s = 0; s < symbols.size(); ++s) {
    const std::string& name = symbols[s];
    if (const auto* v = given.trusted.if_contains(name))
      m.set(s, from_json(m.memory, *v, false));
    else if (const auto* c = given.content.if_contains(name))
      m.set(s, from_json(m.memory, *c, true));
    else if (value f = global_function(m, name); !f.is_undefined())
      m.set(s, std::move(f));
  }
}

}  // namespace

result<rendering> program::render(const variables& given, const limits& most) const {
  const parsed& p = tree_->source;
  try {
    machine m(most, p.symbols, given.now);
    set_names(m, p.symbols, given);
    text_builder out(m.memory);
    out.bound_output();
    const machine::capture into(m, out);
    const machine::scope names(m);
    run(m, p.body);
    return std::move(out).finish_output();
  } catch (const failure& f) {
    if (f.raised) return bad_param("", "{}", f.message);
    return make_error(f.stopped ? errc::invalid_param : errc::bad_file,
                      "the chat template fails in line {}: {}", f.line, f.message);
  }
}

}  // namespace weir::core::jinja
