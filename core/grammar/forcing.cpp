#include "core/grammar/forcing.h"

namespace weir::core::grammar {

result<forcing> parse_forcing(std::string_view name) {
  if (name == "canonical") return forcing::canonical;
  if (name == "single") return forcing::single;
  if (name == "off") return forcing::off;
  return bad_param("force", "force must be canonical, single or off");
}

}  // namespace weir::core::grammar
