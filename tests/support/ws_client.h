// ws_client.h — a WebSocket client for tests: one call at a time, each with a limit of a minute, on whatever
// thread calls. Beast stays in ws_client.cpp, so that a file of tests compiles in seconds.
//
// A call that outlasts its limit fails the test.
#pragma once

#include <boost/json/object.hpp>
#include <boost/system/error_code.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::tests {

struct ws_options {
  std::string path = "/v1/stream", protocols = "weir.v1";
  std::string origin, authorization, host;
  int receive_buffer = 0;  // bytes that the system keeps for this client; 0: its default
};

class ws_client {
 public:
  using object = boost::json::object;
  using error_code = boost::system::error_code;

  // Connects, and makes the handshake.
  explicit ws_client(unsigned short port, ws_options o = {});
  ~ws_client();
  ws_client(const ws_client&) = delete;
  ws_client& operator=(const ws_client&) = delete;

  // The answer to the handshake.
  unsigned status() const;
  std::string header(std::string_view name) const;  // empty: there is none

  bool open() const { return !failed_; }
  error_code error() const { return failed_; }
  std::uint16_t close_code() const;

  void send(std::string_view text);
  void send_binary(std::string_view bytes);
  void send_raw(std::string_view bytes);

  // The next frame, or nothing where the socket has ended.
  std::optional<object> next();
  object read();
  // The next frame of this type. Frames before it are skipped.
  object read(std::string_view type);
  // Reads until the socket ends, and returns the close code.
  std::uint16_t until_closed();

  void close();
  // As a peer that is gone: no closing handshake.
  void drop();

  std::string last;  // text of the last frame

 private:
  struct parts;
  template <class Start>
  void wait(Start start);

  std::unique_ptr<parts> p_;
  error_code failed_;
};

// What a lane showed, checked frame by frame: seq strictly rising, n covering exactly what was new.
struct lane_reader {
  std::string text;
  std::uint64_t seq = 0;
  std::vector<std::int64_t> ids;
  std::int64_t t = 0;
  std::optional<boost::json::object> done;

  void take(const boost::json::object& frame);
};

}  // namespace weir::tests
