// json_line.h — JSON on one line for people and programs: numbers as people write them (0.363, not 3.63E-1).
#pragma once

#include <boost/json/value.hpp>
#include <string>

namespace weir::core {

// A number is written with the fewest digits that give the same number; one that is not finite is null.
std::string json_line(const boost::json::value& v);

// A time in ms or us with three decimals: more digits are noise.
double rounded_time(double t);

}  // namespace weir::core
