// plain_server.h — the server of server_fixture.h behind two numbers, for tests that speak to it in bytes.
// The server's headers stay out of such tests, so that tables of bytes compile in a second.
#pragma once

#include <chrono>
#include <memory>

namespace weir::tests {

class plain_server {
 public:
  explicit plain_server(std::chrono::milliseconds body_time = std::chrono::seconds(30));
  ~plain_server();
  unsigned short port() const;
  void until_no_sessions();  // fails the test where a WebSocket session stays

 private:
  struct parts;
  std::unique_ptr<parts> p_;
};

}  // namespace weir::tests
