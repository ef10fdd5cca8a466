#include "net/load/weir_talk.h"

#include "net/load/plain_delta.h"
#include "net/load/talk_fields.h"

namespace weir::load {

using namespace fields;
using kind = happening::kind;

namespace {

constexpr std::int64_t most_tokens = 1'000'000'000;  // of one delta
constexpr std::uint16_t going_away = 1001;           // the code with which a server that ends closes

}  // namespace

weir_talk::weir_talk(const manner& m, std::uint64_t random)
    : m_(&m), nonce_(ws_nonce(random)), reader_(nonce_), random_(random) {}

std::string weir_talk::hello() const { return ws_request(m_->to.authority(), m_->to.path, nonce_, m_->key); }

void weir_talk::begin(std::string_view lane, stage now, std::uint64_t after) {
  lane_ = lane;
  now_ = now;
  after_ = seen_ = acked_ = after;
}

std::string weir_talk::framed(std::string_view message) {
  std::string out;
  append_ws_frame(out, ws_opcode::text, message, mask());
  return out;
}

std::string weir_talk::ask(const question& q) {
  begin(q.id, stage::asked, 0);
  response_id_.clear();
  json::object o{{"type", "response.create"},  {"id", q.id},       {"input", q.prompt},
                 {"max_tokens", q.max_tokens}, {"temperature", 0}, {"timing", true}};
  o["on_disconnect"] = m_->outlives ? "continue" : "cancel";
  if (!m_->model.empty()) o["model"] = m_->model;
  if (!m_->pace.empty()) o["pace"] = m_->pace;
  if (m_->window) o["window"] = m_->window;
  if (!m_->on_lag.empty()) o["on_lag"] = m_->on_lag;
  return framed(with(o, m_->extra));
}

std::string weir_talk::resume(std::string_view lane, std::string_view response_id, std::uint64_t after) {
  begin(lane, stage::resuming, after);
  response_id_ = response_id;
  json::object o{{"type", "response.resume"}, {"after", after}};
  o["id"] = lane_;
  o["response_id"] = response_id_;
  return framed(json::serialize(o));
}

std::string weir_talk::cancel() {
  return framed(fmt::format(R"({{"type":"response.cancel","id":"{}"}})", lane_));
}

bool weir_talk::next(happening& h) {
  for (;;) {
    const auto got = reader_.next();
    switch (got.is) {
      case ws_reader::kind::more:
        return false;
      case ws_reader::kind::upgraded:
        continue;
      case ws_reader::kind::message:
        if (understand(got.payload, h)) return true;
        continue;
      case ws_reader::kind::ping:
        append_ws_frame(to_send_, ws_opcode::pong, got.payload, mask());
        continue;
      case ws_reader::kind::refused: {
        std::string why = fmt::format("upgrade refused: {}", got.code);
        with_object(got.payload, [&](const json::object& o) { why.append(" ").append(error_text(o)); });
        return fail(h, std::move(why));
      }
      case ws_reader::kind::closed:
        fail(h, fmt::format("closed by the server with {}", got.code));
        h.is = kind::closed;
        h.leaves = got.code == going_away;
        return true;
      case ws_reader::kind::broken:
        return fail(h, fmt::format("not a WebSocket: {}", got.payload));
    }
  }
}

std::string weir_talk::take_to_send() {
  const bool due = m_->window && now_ == stage::open && seen_ - acked_ >= (m_->window + 1) / 2;
  if (!due && to_send_.empty()) return {};
  if (due) {
    acked_ = seen_;
    to_send_ += framed(fmt::format(R"({{"type":"response.ack","id":"{}","seq":{}}})", lane_, seen_));
  }
  return std::exchange(to_send_, {});
}

bool weir_talk::ended(happening& h) {
  const bool under_way = now_ != stage::idle;
  fail(h, "the connection was lost");
  return under_way;
}

bool weir_talk::fail(happening& h, std::string why) {
  h = {};
  h.is = kind::failed;
  h.why = std::move(why);
  now_ = stage::idle;
  return true;
}

bool weir_talk::understand(std::string_view message, happening& h) {
  h = {};
  const auto d = read_plain(message);
  if (!d) return parse(message, h);
  if (now_ == stage::idle || d->id != lane_) return false;
  h.sampled = d->sampled;
  h.text = d->text;
  return take_delta(d->n.value_or(1), static_cast<std::uint64_t>(d->seq.value_or(0)), h);
}

bool weir_talk::take_delta(std::int64_t n, std::uint64_t seq, happening& h) {
  if (now_ == stage::resuming) return fail(h, "response.delta before response.resumed");
  if (n < 0 || n > most_tokens) return fail(h, fmt::format("response.delta with n {}", n));
  now_ = stage::open;
  h.is = kind::tokens;
  h.n = static_cast<std::uint32_t>(n);
  h.seq = seq;
  seen_ = std::max(seen_, seq);
  return true;
}

bool weir_talk::take_created(std::string_view response_id, happening& h) {
  if (now_ != stage::asked || !response_id_.empty()) return fail(h, "response.created where none was due");
  response_id_ = response_id;
  h.is = kind::created;
  h.response_id = response_id_;
  return true;
}

bool weir_talk::take_resumed(std::string_view response_id, std::optional<std::int64_t> after, happening& h) {
  if (now_ != stage::resuming) return fail(h, "response.resumed where none was due");
  if (response_id != response_id_)
    return fail(h, fmt::format("response.resumed of another response: {}", brief(response_id)));
  if (!after || *after < 0 || static_cast<std::uint64_t>(*after) != after_)
    return fail(h, fmt::format("response.resumed after {}, where {} was asked for",
                               after ? std::to_string(*after) : "nothing", after_));
  now_ = stage::open;
  h.is = kind::resumed;
  return true;
}

// Any message but a plain delta.
bool weir_talk::parse(std::string_view message, happening& h) {
  bool means = false;
  const bool is_object = with_object(message, [&](const json::object& o) {
    const auto type = string_of(o, "type");
    const auto id = string_of(o, "id");
    const bool ours = now_ != stage::idle && id == lane_;
    if (type == "response.delta" && ours) {
      h.sampled = number_of(o, "t");
      text_ = string_of(o, "delta");
      h.text = text_;
      means = take_delta(number_of(o, "n").value_or(1), count_of(o, "seq"), h);
    } else if (type == "response.created" && ours) {
      means = take_created(string_of(o, "response_id"), h);
    } else if (type == "response.resumed" && ours) {
      means = take_resumed(string_of(o, "response_id"), number_of(o, "after"), h);
    } else if (type == "response.done" && ours) {
      means = true;
      if (now_ == stage::resuming) {
        fail(h, "response.done before response.resumed");
        return;
      }
      const auto status = string_of(o, "status");
      now_ = stage::idle;
      h.is = status == "failed" ? kind::failed : kind::done;
      h.seq = count_of(o, "seq");
      h.cancelled = status == "cancelled";
      if (const auto* usage = object_of(o, "usage")) {
        h.input_tokens = count_of(*usage, "input_tokens");
        h.output_tokens = count_of(*usage, "output_tokens");
      }
      if (h.is == kind::failed) h.why = error_text(o);
    } else if (type == "session.created") {
      h.is = kind::opened;
      means = true;
    } else if (type == "error") {
      const auto code = string_of(o, "code");
      // An acknowledgement or a cancel may reach the server after the end of its answer.
      if (!ours && !id.empty() && code == "not_found") return;
      h.is = ours ? kind::refused : kind::failed;
      h.expired = code == "resume_expired";
      h.why = error_text(o);
      now_ = stage::idle;
      means = true;
    }
  });
  if (!is_object) return fail(h, fmt::format("a frame that is no JSON object: {}", brief(message)));
  return means;
}

}  // namespace weir::load
