// local_service.h — a service inside this process, for subcommands that generate without a server.
#pragma once

#include <boost/asio/io_context.hpp>

#include "actors/service.h"
#include "core/config.h"

namespace weir::apps {

// Loads the models of the settings and shows progress on stderr. Errors are printed; `exit` is then the exit
// code.
class local_service {
 public:
  // `jobs`: most jobs that run or wait at once. With auto, --kv-tokens has room for no more.
  local_service(const core::engine_settings& s, std::uint32_t jobs);

  bool ok() const { return exit_ == 0; }
  int exit() const { return exit_; }
  actors::service& get() { return *service_; }
  boost::asio::io_context& io() { return io_; }

 private:
  actors::system_time clock_;
  boost::asio::io_context io_{1};
  std::unique_ptr<actors::service> service_;
  int exit_ = 0;
};

// The exit code for an error.
int exit_of(const core::error& e);

}  // namespace weir::apps
