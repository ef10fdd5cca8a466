// http_client.h — an HTTP client for tests that sends any bytes it is told to, and reads each answer within a
// minute. Beast stays in http_client.cpp, so that a file of tests compiles in seconds.
//
// A read that outlasts its limit fails the test.
#pragma once

#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::tests {

inline boost::json::value json_text(std::string_view text) {
  return boost::json::string(text.data(), text.size());
}

struct http_answer {
  unsigned status = 0;  // 0: the connection ended without one
  std::vector<std::pair<std::string, std::string>> headers;
  std::string text;

  std::string header(std::string_view name) const;  // in any case; empty: there is none
  const std::string& body() const { return text; }
  boost::json::value json() const;
  boost::json::value error() const { return json().at("error"); }
};

class http_client {
 public:
  explicit http_client(unsigned short port);
  ~http_client();
  http_client(const http_client&) = delete;
  http_client& operator=(const http_client&) = delete;

  http_answer get(std::string_view target, std::string_view more = {}) {
    return ask("GET", target, {}, more);
  }
  http_answer post(std::string_view target, std::string_view body, std::string_view more = {}) {
    return ask("POST", target, body, more);
  }
  http_answer ask(std::string_view method, std::string_view target, std::string_view body,
                  std::string_view more);

  // The text of a request. Host, and of a POST the type and the length, are added where `more` does not have
  // them.
  std::string request(std::string_view method, std::string_view target, std::string_view body,
                      std::string_view more) const;

  void send(std::string_view bytes);
  http_answer read(bool head = false);
  // Bytes as they come, at least one; empty at the end.
  std::string read_some();
  // Bytes up to and past this text.
  std::string read_until(std::string_view text);
  bool ended() { return read_some().empty(); }

  void drop();

 private:
  struct parts;
  template <class Start>
  boost::system::error_code wait(Start start);

  unsigned short port_;
  std::unique_ptr<parts> p_;
};

}  // namespace weir::tests
