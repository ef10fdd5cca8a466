#include "tests/support/plain_server.h"

#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"

namespace weir::tests {

struct plain_server::parts {
  explicit parts(server_options o) : server(std::move(o)) {}
  server_fixture server;
};

plain_server::plain_server(std::chrono::milliseconds body_time) {
  server_options o;
  o.net.limits.body_time = body_time;
  p_ = std::make_unique<parts>(std::move(o));
}
plain_server::~plain_server() = default;

unsigned short plain_server::port() const { return p_->server.port(); }

void plain_server::until_no_sessions() {
  http_client c(port());
  server_fixture::until([&] { return c.get("/v1/stats").json().at("sessions").to_number<int>() == 0; });
}

}  // namespace weir::tests
