#include "apps/sampling_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace weir::apps {

void add_sampling(CLI::App& app, core::sampling_request& r) {
  core::visit_sampling([&](const core::sampling_field& f, auto sent, auto) {
    if constexpr (requires { static_cast<double>(*(r.*sent)); }) {
      if (!*f.option) return;
      std::string name = f.name;
      std::ranges::replace(name, '_', '-');
      app.add_option("--" + name, r.*sent, f.option);
    }
  });
}

boost::json::object sampling_fields(const core::sampling_request& r) {
  boost::json::object out;
  core::visit_sampling([&](const core::sampling_field& f, auto sent, auto) {
    if constexpr (requires { static_cast<double>(*(r.*sent)); })
      if (r.*sent) out[f.name] = *(r.*sent);
  });
  return out;
}

}  // namespace weir::apps
