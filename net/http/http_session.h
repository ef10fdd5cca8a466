// http_session.h — one connection that speaks HTTP/1.1, until it ends or becomes a WebSocket.
//
// One coroutine on one shard: read a header, judge it, read the body, answer, again. A request that is not
// allowed is refused before its body is read. While a job runs, the session goes on reading into a bounded
// buffer, so that the job is cancelled when its client leaves.
//
// Thread safety: everything on the shard.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "net/access/cors.h"
#include "net/http/http_routes.h"
#include "net/http/http_state.h"
#include "net/http/send_progress.h"
#include "net/http/stream_silence.h"
#include "net/hub.h"
#include "net/protocol/openai.h"
#include "net/submit.h"
#include "net/wake.h"
#include "net/ws/ws_session.h"

namespace weir::net {

class http_session : public std::enable_shared_from_this<http_session> {
 public:
  // `by`: where the connection came in; it outlives the hub's server_state.
  http_session(std::shared_ptr<hub> h, const entrance& by, boost::asio::ip::tcp::socket socket,
               address_book::entry caller, core::memory_hold memory);
  boost::asio::awaitable<void> run();

 private:
  using request = boost::beast::http::request<boost::beast::http::string_body>;
  using parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  // Each returns whether the connection goes on.
  boost::asio::awaitable<bool> one_request();
  boost::asio::awaitable<void> read_header(parser& p, boost::system::error_code& ec);
  boost::asio::awaitable<void> read_body(parser& p, boost::system::error_code& ec);
  // The refusal of a request whose header has been read, and whose body perhaps has not.
  boost::asio::awaitable<bool> refuse(reply no, parser& p);
  boost::asio::awaitable<bool> refuse_unreadable(boost::system::error_code ec);
  boost::asio::awaitable<bool> upgrade(request r);
  boost::asio::awaitable<bool> answer(const request& r, const route_match& route);

  // http_completion.cpp
  using job_list = std::vector<std::shared_ptr<actors::job_stream>>;
  boost::asio::awaitable<bool> complete(openai::dialect d, const request& r);
  boost::asio::awaitable<bool> complete_message(const request& r);
  // Submits a request with n choices a prompt in the client's name, and begins to watch the client. `route`:
  // the request's path, a constant.
  using submitted = boost::system::result<job_list, key_refusal>;
  submitted submit(actors::request asked, std::uint32_t n, std::string_view route);
  // Waits for the jobs, and answers by the encoder of a dialect (openai_encoder, anthropic_encoder).
  template <class Encoder>
  boost::asio::awaitable<bool> answer_with(const Encoder& encoder, submitted jobs, bool streamed);
  // Writes events until the jobs have ended or the client is gone.
  template <class Encoder>
  boost::asio::awaitable<void> stream_events(const Encoder& encoder, const job_list& all);
  struct shown_choice {
    std::uint32_t tokens = 0, sent = 0;
    std::uint64_t characters = 0;  // of text; counted where there are logprobs
    bool ended = false;
  };
  template <class Events>
  void show_news(const Events& events, const actors::job_stream& job, std::uint32_t index, bool with_ids,
                 shown_choice& shown);
  void note_sent(const job_list& all, std::span<shown_choice> shown);

  // http_write.cpp
  boost::asio::awaitable<bool> write(reply r);
  void add_common_headers(boost::beast::http::fields& m) const;
  boost::asio::awaitable<void> write_bytes(std::string_view data);
  boost::asio::awaitable<void> write_chunk(std::string_view data, bool last);
  boost::asio::awaitable<void> read_away_the_rest();
  void cut_off_stalled_reader();

  void tick();
  // Ends the read in progress once `most` has passed, without closing the socket: the client is still told.
  void read_within(std::chrono::milliseconds most);
  found_route route_of(const request& r) const;
  // The refusal of a request whose Host header is wrong or not allowed; nullopt: it is allowed.
  std::optional<reply> judge_host(const request& r) const;
  using sender = boost::system::result<bearer, token_fault>;
  sender sender_of(const request& r) const;  // by the key or token in its header
  // `to`: nullopt where nothing is at the path.
  std::optional<reply> judge_key(const request& r, const sender& from, std::optional<endpoint> to) const;
  std::optional<reply> judge_token(const request& r, const bearer& from, std::optional<endpoint> to) const;
  std::optional<reply> judge_route(const request& r, const found_route& found) const;
  std::optional<reply> judge(const request& r, const sender& from, const found_route& found) const;
  std::optional<reply> judge_once(const request& r, boost::beast::http::field header) const;
  std::optional<reply> judge_key_headers(const request& r) const;
  cors_verdict cors_of(const request& r) const;
  std::optional<reply> judge_upgrade(const request& r, admission& how) const;

  // http_watch.cpp. Until stop_watching() has returned, bytes from the client are read into buffer_. news_ is
  // notified when the client is gone.
  void watch_peer();
  void watched(boost::system::error_code ec, std::size_t bytes);
  boost::asio::awaitable<void> stop_watching();

  std::shared_ptr<hub> at_;
  hub& hub_;
  const entrance& by_;
  counted_coroutine counted_;
  address_book::entry caller_;
  core::memory_hold memory_;  // of the connection and, while there is one, of the request's body
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;  // bounded: a header, the framing of a body, or bytes sent ahead
  std::shared_ptr<wake> news_;
  std::string request_id_;
  unsigned version_ = 11;  // of the request being answered
  bearer from_;            // who sends the request, by its header alone; nobody between requests
  http_state state_;
  send_progress sending_;
  std::optional<stream_silence> silence_;  // while events are streamed
  bool head_only_ = false;  // the request being answered is a HEAD
  bool anthropic_ = false;  // its path is one of Anthropic's, and so are its errors
  cors_verdict cors_;       // of the request being answered
  std::string out_, text_;  // of a stream, kept so that they need not grow again
  std::vector<core::token_id> ids_;
};

}  // namespace weir::net
