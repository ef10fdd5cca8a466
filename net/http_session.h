// http_session.h — one connection that speaks HTTP/1.1, until it ends or becomes a WebSocket.
//
// One coroutine on one shard: read a request, answer it, again. While a job runs the socket is watched, so
// that a client that goes away takes its job with it.
//
// Thread safety: everything on the shard.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "net/http_routes.h"
#include "net/hub.h"
#include "net/openai.h"
#include "net/wake.h"
#include "net/ws_session.h"

namespace weir::net {

class http_session : public std::enable_shared_from_this<http_session> {
 public:
  http_session(std::shared_ptr<hub> h, boost::asio::ip::tcp::socket socket, address_book::entry caller);
  boost::asio::awaitable<void> run();

 private:
  using request = boost::beast::http::request<boost::beast::http::string_body>;
  using parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  // Each answers whether the connection goes on.
  boost::asio::awaitable<bool> one_request();
  boost::asio::awaitable<void> read_header(parser& p, boost::system::error_code& ec);
  boost::asio::awaitable<void> read_body(parser& p, boost::system::error_code& ec);
  boost::asio::awaitable<bool> refuse_header(boost::system::error_code ec);
  boost::asio::awaitable<bool> refuse_body();
  boost::asio::awaitable<bool> upgrade(request r);
  boost::asio::awaitable<bool> answer(const request& r);
  boost::asio::awaitable<bool> complete(openai::dialect d, const request& r);  // http_completion.cpp
  boost::asio::awaitable<bool> stream_events(openai::dialect d, const openai::parsed_request& p,
                                             std::span<const std::shared_ptr<actors::job_stream>> jobs);
  struct shown_choice {
    std::uint32_t tokens = 0, sent = 0;
    bool ended = false;
  };
  void show_news(const openai::event_writer& events, const actors::job_stream& job, std::uint32_t index,
                 bool with_ids, shown_choice& shown);
  boost::asio::awaitable<void> write_chunk(std::string_view data, bool last);

  boost::asio::awaitable<bool> write(reply r);
  boost::asio::awaitable<void> read_away_the_rest();
  void tick();
  // Ends the read in progress once `most` has passed, without closing the socket: the client is still told.
  void read_within(std::chrono::milliseconds most);
  void read_done() { read_by_.reset(); }
  // What speaks against it, if anything does.
  std::optional<reply> judge_host(const request& r) const;
  std::optional<reply> judge(const request& r, const route_match& route) const;
  std::optional<reply> judge_once(const request& r, boost::beast::http::field header) const;
  std::uint64_t key_of(const request& r) const;  // who brings it, by its key; 0: none that is known
  std::optional<reply> judge_upgrade(const request& r, admission& how) const;

  void watch_peer();  // until stop_watching(): notifies news_ when the client is gone
  void stop_watching();

  std::shared_ptr<hub> at_;
  hub& hub_;
  guest in_hall_;
  address_book::entry caller_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  std::shared_ptr<wake> news_;
  std::string request_id_;
  unsigned version_ = 11;  // of the request being answered
  std::optional<std::chrono::steady_clock::time_point> read_by_;
  bool late_ = false;  // the read in progress was ended
  bool keep_alive_ = true;
  bool head_only_ = false;
  bool between_requests_ = true;
  bool first_ = true;
  bool peer_gone_ = false;
  std::string out_, text_;  // of a stream, kept so that they need not grow again
  std::vector<core::token_id> ids_;
};

}  // namespace weir::net
