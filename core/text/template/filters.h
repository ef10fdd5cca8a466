// filters.h — the tables of filters.
//
// Thread safety: constant data.
#pragma once

#include <span>

#include "core/text/template/parameters.h"

namespace weir::core::jinja {

struct filter_row {
  std::string_view name;
  value (*run)(machine& m, const value& subject, arguments& a);
};

// Filters that go over the items of their subject.
std::span<const filter_row> sequence_filters();

}  // namespace weir::core::jinja
