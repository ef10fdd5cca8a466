// remote_answer.h — asks a server for an answer and reads it, without a socket: over weir.v1, or as OpenAI's
// chat completions with server-sent events.
//
// Thread safety: none; one owner.
// Invariant: over() becomes true once, and how() says how the answer ended.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "apps/chat/peer.h"
#include "net/load/url.h"

namespace weir::apps {

class remote_answer {
 public:
  virtual ~remote_answer() = default;

  virtual std::string hello() = 0;  // bytes to send first
  // Takes bytes from the connection. Returns bytes to send.
  virtual std::string take(std::string_view bytes, const peer::on_text& show) = 0;
  // No bytes follow: shows text that has waited for more.
  virtual void show_rest(const peer::on_text&) {}
  // Bytes that cancel the answer; empty: the connection has to be closed.
  virtual std::string cancel() = 0;
  // The connection has ended.
  void lost() { give_up("the connection was lost"); }
  // The client ends the answer; nothing happens if it is over.
  void give_up(std::string why) {
    if (!over_) fail(why);
  }

  bool over() const noexcept { return over_; }
  answer_end& how() noexcept { return how_; }

 protected:
  void fail(std::string_view why) {
    constexpr std::size_t longest_error = 2'000;
    how_.error = why.substr(0, longest_error);
    over_ = true;
  }
  answer_end how_;
  bool over_ = false;
};

// `key`: API key; empty: none. `fields`: of the request, without the messages.
std::unique_ptr<remote_answer> weir_answer(const load::target& to, std::string_view key,
                                           boost::json::object fields, const boost::json::array& messages);
std::unique_ptr<remote_answer> openai_answer(const load::target& to, std::string_view key,
                                             boost::json::object fields, const boost::json::array& messages);

}  // namespace weir::apps
