// The plan of a load, before there is a ledger of devices.
#include "actors/service_parts.h"

namespace weir::actors {

void service::plan_model(load_order, std::vector<std::string>, executor ex,
                         std::function<void(boost::system::result<std::string, order_error>)> done) {
  order_error no{core::make_error(core::errc::not_supported, "plans are not supported yet"), {}};
  post_call(ex, done, boost::system::result<std::string, order_error>(std::move(no)));
}

}  // namespace weir::actors
