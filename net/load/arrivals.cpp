#include "net/load/arrivals.h"

#include <charconv>

namespace weir::load {

core::result<double> parse_arrivals(std::string_view text) {
  if (text == "poisson") return 1.0;
  if (text == "constant") return 0.0;
  double shape = 0;
  if (text.starts_with("gamma:")) {
    const auto number = text.substr(6);
    const auto [end, ec] = std::from_chars(number.data(), number.data() + number.size(), shape);
    if (ec == std::errc() && end == number.data() + number.size() && shape >= 0.01 && shape <= 1000)
      return shape;
  }
  return core::bad_param("arrivals",
                         "--arrivals {}: not poisson, constant or gamma:B with B from 0.01 to 1000", text);
}

}  // namespace weir::load
