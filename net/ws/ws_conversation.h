// ws_conversation.h — what a WebSocket client says, and what follows: lanes that open, answers and errors.
//
// No socket and no clock: messages come as text, the time is passed in, and frames go to a ws_frames. The
// session (net/ws/ws_session.h) reads, writes and closes.
//
// Thread safety: everything on the session's shard.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/access/rate.h"
#include "net/hub.h"
#include "net/submit.h"
#include "net/ws/admission.h"
#include "net/ws/ws_closing.h"
#include "net/ws/ws_frames.h"

namespace weir::net {

class ws_conversation {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  // What the session does for its conversation.
  class outside {
   public:
    // There may be something new to write.
    virtual void write() = 0;
    // What jobs call on the shard when they have something new: write(), unless the session is gone by then.
    virtual std::function<void()> news() = 0;
    virtual std::weak_ptr<outside> weak() = 0;  // expires with the session
    // Sends a frame of the session's own, unless the session closes.
    virtual void say(std::string frame) = 0;
    virtual void close(close_code why) = 0;
    // The client's key is known: messages may be longer than a header.
    virtual void allow_messages() = 0;

   protected:
    ~outside() = default;
  };

  // The hub, the frames and the session must outlive this object.
  ws_conversation(hub& h, ws_frames& frames, outside& session, admission how, time_point now);

  // The first frame, session.created. REQUIRES: the client is authenticated.
  void welcome();
  // What a message says; nullopt: it has too many bytes. A pure function.
  using heard = std::optional<ws::client_message>;
  static heard parse(std::string_view text, std::size_t most_bytes, json_bounds most);
  // Acts on one message. `is_text`: it came in a text frame.
  void understand(std::string_view text, bool is_text, time_point now);
  // The same for a message that was parsed. What it does not need stays in `message`.
  void act(heard& message, time_point now);
  // Tells the client why its message was not parsed.
  void say_unread(const core::error& why);

  const admission& how() const noexcept { return how_; }
  // A key that the client sent, in the handshake or later, has left the file of keys.
  bool key_removed() const noexcept;
  // Counts the connection's memory. Returns false if there is not that much left.
  bool hold(std::size_t bytes) { return how_.memory.resize(bytes); }

 private:
  void on(ws::protocol_error& e) { say_error(std::move(e)); }
  void on(ws::session_auth& m);
  void on(ws::response_create& m);
  void on(ws::response_resume& m);
  void on(ws::response_ack& m);
  void on(ws::response_cancel& m);
  void on(ws::ping& m);
  void on(ws::pong&) {}
  bool judge_token(const std::string& lane, actors::request& r);
  void refuse(const std::string& lane, const key_refusal& no);
  void come_in_as(bearer from);
  bool has_place_for(const std::string& lane);
  void say_error(ws::protocol_error e);

  hub& hub_;
  ws_frames& frames_;
  outside& session_;
  admission how_;
  std::vector<std::shared_ptr<const known_key>>
      keys_;  // all that the client has said so far; it has their jobs
  rate_meter rate_;
};

}  // namespace weir::net
