// http_session.h — one connection that speaks HTTP/1.1, until it ends or becomes a WebSocket.
//
// One coroutine on one shard: read a header, ask the gate (http_gate.h), read the body, answer, again. A
// request that is not allowed is refused before its body is read. While a job runs, the session goes on
// reading into a bounded buffer, so that the job is cancelled when its client leaves.
//
// Thread safety: everything on the shard.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "net/http/answer_choice.h"
#include "net/http/http_gate.h"
#include "net/http/http_routes.h"
#include "net/http/http_sender.h"
#include "net/http/http_state.h"
#include "net/hub.h"
#include "net/protocol/openai.h"
#include "net/response_intake.h"
#include "net/sent_text.h"
#include "net/submit.h"
#include "net/wake.h"
#include "net/ws/ws_session.h"

namespace weir::net {

struct model_order;

class http_session : public std::enable_shared_from_this<http_session> {
 public:
  // `by`: where the connection came in; it outlives the hub's server_state.
  http_session(std::shared_ptr<hub> h, const entrance& by, boost::asio::ip::tcp::socket socket,
               address_book::entry caller, core::memory_hold memory, reserve::place reserved);
  boost::asio::awaitable<void> run();

 private:
  using request = boost::beast::http::request<boost::beast::http::string_body>;
  using parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  // Each returns whether the connection goes on.
  boost::asio::awaitable<bool> one_request();
  boost::asio::awaitable<void> skip_empty_line(boost::system::error_code& ec);
  boost::asio::awaitable<void> read_header(parser& p, boost::system::error_code& ec);
  boost::asio::awaitable<void> read_body(parser& p, boost::system::error_code& ec);
  boost::asio::awaitable<bool> judged(parser& p, http_verdict v);
  boost::asio::awaitable<bool> turn_away(parser& p, turned_away no);
  boost::asio::awaitable<bool> refuse_unreadable(boost::system::error_code ec);
  boost::asio::awaitable<bool> upgrade(request r, upgrades to);
  boost::asio::awaitable<bool> answer(request& r, const route_match& route);

  // http_completion.cpp
  using job_list = std::vector<std::shared_ptr<actors::job_stream>>;
  boost::asio::awaitable<bool> complete(openai::dialect d, std::string body);
  boost::asio::awaitable<bool> complete_message(std::string body);
  // Below. Parses a body, as read_sent(); a client is watched while its long body waits. Null: it has gone.
  template <class T, class Parse>
  boost::asio::awaitable<std::shared_ptr<sent_text<T>>> read_watched(std::string body, Parse parse);
  // Submits a request with n choices a prompt in the client's name, and begins to watch the client. `route`:
  // the request's path, a constant.
  using submitted = boost::system::result<job_list, key_refusal>;
  submitted submit(actors::request&& asked, std::uint32_t n, std::string_view route);
  struct answer_wishes {
    bool streamed, outlives;  // as openai::parsed_request
    bool background = false;  // as responses::parsed_request
  };
  // Waits for the jobs, and answers by the encoder of a dialect (openai_encoder, anthropic_encoder,
  // responses_encoder). The answer in the background comes once the job runs.
  template <class Encoder>
  boost::asio::awaitable<bool> answer_with(const Encoder& encoder, submitted jobs, answer_wishes how);
  // Keeps the jobs of an answer that outlives its client, until all that follow them are gone.
  // `ending_is_kept`: as in kept_job.
  std::vector<kept_jobs::follower> keep(std::shared_ptr<const kept_answer> answer, const job_list& all,
                                        bool ending_is_kept);
  // Writes events until the jobs have ended or the client is gone. `from`: tokens of each choice that the
  // client has.
  template <class Encoder>
  boost::asio::awaitable<void> stream_events(const Encoder& encoder, std::vector<answer_choice> all,
                                             std::vector<std::uint32_t> from);
  boost::asio::awaitable<void> stream_kept(const kept_answer& a, std::vector<answer_choice> all,
                                           std::vector<std::uint32_t> from);
  // Shows a client that its answer of events waits for the load of a model.
  boost::asio::awaitable<void> show_wait();
  // Sends the header of an answer of server-sent events.
  boost::asio::awaitable<void> begin_events();
  struct shown_choice {
    std::uint32_t tokens = 0, sent = 0;
    std::uint64_t characters = 0;  // of text; counted where there are logprobs
    bool ended = false;
  };
  template <class Events>
  bool show_news(Events& events, answer_choice& job, std::uint32_t index, bool with_ids,
                 std::span<shown_choice> all_shown);
  // Writes out_, and empties it.
  boost::asio::awaitable<void> send_events(std::span<const answer_choice> all, std::span<shown_choice> shown,
                                           bool last);
  void note_sent(std::span<const answer_choice> all, std::span<shown_choice> shown);

  // http_events.cpp
  // Follows an answer that outlives its client, as events.
  boost::asio::awaitable<bool> follow_answer(const request& r, const route_match& route);
  // Writes the events of an answer whose first job is `first`.
  boost::asio::awaitable<bool> follow_choices(std::shared_ptr<followed_job> first,
                                              std::vector<std::uint32_t> from, std::string_view field);
  std::shared_ptr<followed_job> follow(const core::job_id& id, std::uint32_t after, std::size_t choices,
                                       bool in_passing = false);
  boost::asio::awaitable<bool> refuse_follower(const follow_refusal& no, std::string_view field);

  // http_responses.cpp
  boost::asio::awaitable<bool> complete_response(std::string body);
  // Reads a body, and looks up what it goes on with. Null: the client has gone, or was refused; then
  // `goes_on` is set.
  boost::asio::awaitable<std::shared_ptr<sent_text<read_response>>> take_in(std::string body, bool& goes_on);
  // What a route of one response does, by its id.
  boost::asio::awaitable<bool> answer_response(const request& r, const route_match& route);
  boost::asio::awaitable<reply> show_response(std::string id);
  boost::asio::awaitable<reply> remove_response(std::string id);
  boost::asio::awaitable<reply> cancel_response(std::string id);
  boost::asio::awaitable<reply> list_response_items(std::string id, std::string target);
  boost::asio::awaitable<bool> follow_response(std::string id, std::string target);
  // The job of a response that is kept in kept_jobs, once it is admitted or has ended; null: there is none.
  boost::asio::awaitable<std::shared_ptr<followed_job>> find_job_of_response(const std::string& id);

  // http_models.cpp
  boost::asio::awaitable<bool> carry_out(const route_match& route, std::string body);
  boost::asio::awaitable<bool> order_worker(const route_match& route, std::string body);
  using order_beginning = std::function<void(std::function<void(reply)> answered)>;
  boost::asio::awaitable<bool> answer_order(const order_beginning& begin);
  // Sets the source of the order, or returns the refusal.
  boost::asio::awaitable<std::optional<reply>> settle(std::shared_ptr<model_order> order);
  boost::asio::awaitable<bool> follow_models();
  // Sends events until the client is gone or the server drains.
  boost::asio::awaitable<void> send_models(const model_watch::follower& place);
  // `shown`: what the client was sent last; null: nothing.
  boost::asio::awaitable<void> send_difference(const actors::models_picture* shown,
                                               const actors::models_picture& now);

  boost::asio::awaitable<bool> write(reply r);
  // Writes a body piece by piece. `r.body` is the first piece, and more follow.
  boost::asio::awaitable<bool> write_pieces(reply r);
  boost::asio::awaitable<void> read_away_the_rest(std::chrono::milliseconds most);

  void tick();
  // Ends the read in progress once `most` has passed, without closing the socket: the client is still told.
  void read_within(std::chrono::milliseconds most);

  // http_watch.cpp. Until stop_watching() has returned, bytes from the client are read into buffer_. news_ is
  // notified and left_ set when the client is gone.
  void watch_peer();
  void note_end();
  void watched(boost::system::error_code ec, std::size_t bytes);
  // Makes every later read report that the client has ended its side. buffer_ may hold further requests.
  void say_end_again();
  // From now on the client, which has ended its side, is asked every second whether it is still there.
  void begin_probing();
  void watch_for_reset();
  // Sends what the system of a client that has left answers with a reset. False: the client has left.
  bool probe();
  boost::asio::awaitable<void> stop_watching();

  std::shared_ptr<hub> at_;
  hub& hub_;
  counted_coroutine counted_;
  address_book::entry caller_;
  const reserve::place reserved_;  // where it came in by the reserve
  core::memory_hold memory_;       // of the connection and, while there is one, of the request's body
  boost::beast::tcp_stream stream_;
  const boost::asio::ip::address peer_;
  boost::beast::flat_buffer buffer_;  // bounded: a header, the framing of a body, or bytes sent ahead
  std::shared_ptr<wake> news_;
  std::shared_ptr<std::atomic<bool>> left_;  // set when the client leaves while its body is parsed
  bearer from_;       // who sends the request, by its header alone; nobody between requests
  answer_form form_;  // of the answer to it
  http_state state_;
  const http_gate gate_;
  http_sender sender_;
  bool events_began_ = false;  // in answer to this request: nothing else may be written any more
  // When a client that has said all is asked again; unset: none is, or its answer has begun.
  std::optional<std::chrono::steady_clock::time_point> probe_at_;
  std::string out_;  // of a stream, kept so that it need not grow again
  std::vector<core::token_id> ids_;
  std::vector<actors::part_piece> parts_;  // of the latest news
};

template <class T, class Parse>
boost::asio::awaitable<std::shared_ptr<sent_text<T>>> http_session::read_watched(std::string body,
                                                                                 Parse parse) {
  text_sender from{from_.who.key};
  if (is_long(body)) {
    left_ = std::make_shared<std::atomic<bool>>(false);
    from.left = left_;
    watch_peer();
  }
  auto of =
      co_await read_sent<T>(hub_.server().service, std::move(from), hub_.executor(), std::move(body), parse);
  if (std::exchange(left_, nullptr)) co_await stop_watching();
  if (state_.at() == http_state::phase::client_gone)
    done_with(hub_.server().service, std::exchange(of, nullptr));
  co_return of;
}

}  // namespace weir::net
