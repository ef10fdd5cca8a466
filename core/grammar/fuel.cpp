#include "core/grammar/fuel.h"

namespace weir::core::grammar {

void fuel::look() {
  next_look_ = burnt_ + look_every;
  if (most_.at && !most_.at->go_on())
    throw out_of_fuel{make_error(errc::unavailable, "the compilation of the constraint was cancelled")};
  if (burnt_ > most_.units)
    throw out_of_fuel{
        bad_param("", "the constraint is too large: it takes more than {} units of work", most_.units)};
  if (most_.at && most_.at->now() >= most_.deadline)
    throw out_of_fuel{make_error(errc::overloaded, "the constraint was not compiled before its deadline")};
}

}  // namespace weir::core::grammar
