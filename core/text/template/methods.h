// methods.h — the tables of methods.
//
// Thread safety: constant data.
#pragma once

#include <span>

#include "core/text/template/parameters.h"

namespace weir::core::jinja {

struct method_row {
  std::string_view name;
  value (*run)(machine& m, const value& self, parameters& p);
};

std::span<const method_row> text_methods();

}  // namespace weir::core::jinja
