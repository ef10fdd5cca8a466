#include "net/load/openai_talk.h"

#include "net/load/talk_fields.h"

namespace weir::load {

using namespace fields;
using kind = happening::kind;

std::string openai_talk::ask(const question& q) {
  events_.reset();
  body_.clear();
  why_.clear();
  status_ = 0;
  open_ = true;
  finished_ = false;
  input_tokens_ = output_tokens_ = 0;
  json::object o{{"stream", true}, {"max_tokens", q.max_tokens}, {"temperature", 0}};
  o["stream_options"] = json::object{{"include_usage", true}};
  if (!m_->model.empty()) o["model"] = m_->model;
  if (m_->to.chat()) {
    o["messages"] = json::array{json::object{{"role", "user"}, {"content", q.prompt}}};
  } else {
    o["prompt"] = q.prompt;
  }
  return http_request(m_->to.authority(), m_->to.path, with(o, m_->extra), m_->key);
}

bool openai_talk::next(happening& h) {
  for (;;) {
    while (const auto data = events_.next())
      if (understand(*data, h)) return true;
    if (events_.too_long()) {
      h = {};
      h.is = kind::failed;
      h.why = "an event too long";
      keeps_alive_ = open_ = false;
      events_.reset();
      return true;
    }
    const auto got = reader_.next();
    switch (got.is) {
      case http_reader::kind::more:
        return false;
      case http_reader::kind::head:
        status_ = got.status;
        keeps_alive_ = got.keeps_alive;
        continue;
      case http_reader::kind::data:
        if (status_ == 200) {
          events_.feed(got.bytes);
        } else if (body_.size() < 4096) {
          body_ += got.bytes.substr(0, 4096);
        }
        continue;
      case http_reader::kind::end:
        if (!open_) continue;
        return conclude(h);
      case http_reader::kind::broken:
        h = {};
        h.is = kind::failed;
        h.why = fmt::format("not HTTP: {}", got.bytes);
        keeps_alive_ = open_ = false;
        return true;
    }
  }
}

bool openai_talk::ended(happening& h) {
  keeps_alive_ = false;
  const bool whole = reader_.ended();
  if (!open_) return false;
  if (whole && status_ != 0) return conclude(h);
  open_ = false;
  h = {};
  h.is = kind::failed;
  h.why = "the connection was lost";
  return true;
}

bool openai_talk::conclude(happening& h) {
  open_ = false;
  h = {};
  if (status_ != 200) {
    h.is = kind::refused;
    h.why = std::to_string(status_);
    with_object(body_, [&](const json::object& o) { h.why.append(" ").append(error_text(o)); });
  } else if (!why_.empty() || !finished_) {
    h.is = kind::failed;
    h.why = why_.empty() ? "the stream ended without a finish_reason" : why_;
  } else {
    h.is = kind::done;
    h.input_tokens = input_tokens_;
    h.output_tokens = output_tokens_;
  }
  return true;
}

// Reads one event. It is a frame of tokens if it has text or ids; an event that only begins or ends the
// answer is not.
bool openai_talk::understand(std::string_view data, happening& h) {
  if (data == "[DONE]") return false;
  h = {};
  bool means = false;
  const bool is_object = with_object(data, [&](const json::object& o) {
    if (o.if_contains("error")) why_ = error_text(o);
    if (const auto* usage = object_of(o, "usage")) {
      input_tokens_ = count_of(*usage, "prompt_tokens");
      output_tokens_ = count_of(*usage, "completion_tokens");
    }
    const auto* choices = o.if_contains("choices");
    if (!choices || !choices->is_array() || choices->get_array().empty()) return;
    const auto* choice = choices->get_array()[0].if_object();
    if (!choice) return;
    if (!string_of(*choice, "finish_reason").empty()) finished_ = true;
    text_ = string_of(*choice, "text");
    if (const auto* delta = object_of(*choice, "delta")) {
      text_ = string_of(*delta, "reasoning_content");
      text_ += string_of(*delta, "content");
    }
    const auto* ids = choice->if_contains("token_ids");
    const auto known = ids && ids->is_array() ? ids->get_array().size() : 0;
    if (text_.empty() && known == 0) return;
    h.is = kind::tokens;
    h.n = known ? static_cast<std::uint32_t>(known) : 1;
    h.text = text_;
    means = true;
  });
  if (!is_object) why_ = fmt::format("an event that is no JSON object: {}", brief(data));
  return means;
}

}  // namespace weir::load
