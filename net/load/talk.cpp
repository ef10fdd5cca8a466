#include "net/load/talk.h"

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace weir::load {
namespace {

namespace json = boost::json;
using kind = happening::kind;

// Parses `text` and calls `f` with the object; returns false if it is not a JSON object.
template <class F>
bool with_object(std::string_view text, F&& f) {
  unsigned char memory[4096];
  json::monotonic_resource pool(memory, sizeof memory);
  boost::system::error_code ec;
  const json::value v = json::parse({text.data(), text.size()}, ec, &pool);
  if (ec || !v.is_object()) return false;
  f(v.get_object());
  return true;
}

std::string_view string_of(const json::object& o, std::string_view name) {
  const auto* v = o.if_contains(json::string_view(name.data(), name.size()));
  return v && v->is_string() ? std::string_view(v->get_string().data(), v->get_string().size())
                             : std::string_view();
}

std::optional<std::int64_t> number_of(const json::object& o, std::string_view name) {
  const auto* v = o.if_contains(json::string_view(name.data(), name.size()));
  if (!v || !v->is_number()) return std::nullopt;
  boost::system::error_code ec;
  const auto n = v->to_number<std::int64_t>(ec);
  return ec ? std::nullopt : std::optional(n);
}

std::uint64_t count_of(const json::object& o, std::string_view name) {
  const auto n = number_of(o, name);
  return n && *n > 0 ? static_cast<std::uint64_t>(*n) : 0;
}

const json::object* object_of(const json::object& o, std::string_view name) {
  const auto* v = o.if_contains(json::string_view(name.data(), name.size()));
  return v ? v->if_object() : nullptr;
}

std::string brief(std::string_view text) {
  std::string out(text.substr(0, 200));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return out;
}

// "code: message" of an error object or of a message with one. Without a code, the type is taken.
std::string error_text(const json::object& o) {
  const json::object* e = object_of(o, "error");
  if (!e) e = &o;
  auto code = string_of(*e, "code");
  if (code.empty()) code = string_of(*e, "type");
  return brief(fmt::format("{}: {}", code, string_of(*e, "message")));
}

std::string with(const json::object& ours, const json::object& extra) {
  json::object all = ours;
  for (const auto& field : extra) all[field.key()] = field.value();
  return json::serialize(all);
}

// A delta's fields, as parts of the message.
struct plain_delta {
  std::string_view type, id, text;
  std::optional<std::int64_t> seq, n, sampled;
};

// Reads the value of a flat object's field at the beginning of `rest`, and removes it: a string of ASCII
// without escapes, or a number of digits. Returns false for any other value.
bool take_string(std::string_view& rest, std::string_view& value) {
  if (!rest.starts_with('"')) return false;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    const auto c = static_cast<unsigned char>(rest[i]);
    if (c < ' ' || c == '\\' || c >= 0x80) return false;
    if (c != '"') continue;
    value = rest.substr(1, i - 1);
    rest.remove_prefix(i + 1);
    return true;
  }
  return false;
}
bool take_number(std::string_view& rest, std::optional<std::int64_t>& value) {
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0 || digits > 18 || (digits > 1 && rest[0] == '0')) return false;
  std::int64_t v = 0;
  for (const char c : rest.substr(0, digits)) v = 10 * v + (c - '0');
  value = v;
  rest.remove_prefix(digits);
  return true;
}

// Reads a delta as servers write it, without the cost of a whole JSON parser; nullopt for any message that it
// does not know to the last byte, which is then parsed as JSON.
std::optional<plain_delta> read_plain(std::string_view rest) {
  plain_delta d;
  for (char before = '{'; rest.starts_with(before); before = ',') {
    rest.remove_prefix(1);
    std::string_view name;
    if (!take_string(rest, name) || !rest.starts_with(':')) return std::nullopt;
    rest.remove_prefix(1);
    const bool known = name == "type"    ? take_string(rest, d.type)
                       : name == "id"    ? take_string(rest, d.id)
                       : name == "delta" ? take_string(rest, d.text)
                       : name == "seq"   ? take_number(rest, d.seq)
                       : name == "n"     ? take_number(rest, d.n)
                       : name == "t"     ? take_number(rest, d.sampled)
                                         : false;
    if (!known) return std::nullopt;
  }
  if (rest != "}" || d.type != "response.delta") return std::nullopt;
  return d;
}

std::string make_nonce(std::uint64_t random) {
  static constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef";
  std::string nonce;
  for (int i = 0; i < 21; ++i, random = random * 6364136223846793005u + 1442695040888963407u)
    nonce += letters[random >> 59];
  return nonce + "A==";  // the last character's low bits must be 0, since a nonce has 16 bytes
}

}  // namespace

talk::talk(const manner& m, std::uint64_t random) : how_(openai_talk(m)) {
  if (m.to.speaks == protocol::weir) how_.emplace<weir_talk>(m, random);
}

// ---- weir.v1

weir_talk::weir_talk(const manner& m, std::uint64_t random)
    : m_(&m), random_(random), nonce_(make_nonce(random)), reader_(nonce_) {}

std::string weir_talk::hello() const { return ws_request(m_->to.authority(), m_->to.path, nonce_, m_->key); }

std::string weir_talk::ask(const question& q) {
  lane_ = q.id;
  open_ = true;
  json::object o{{"type", "response.create"}, {"id", q.id}, {"input", q.prompt}, {"max_tokens", q.max_tokens},
                 {"temperature", 0}, {"timing", true}, {"on_disconnect", "cancel"}};
  if (!m_->model.empty()) o["model"] = m_->model;
  std::string out;
  append_ws_frame(out, ws_opcode::text, with(o, m_->extra), mask());
  return out;
}

std::string weir_talk::cancel() const {
  std::string out;
  append_ws_frame(out, ws_opcode::text, fmt::format(R"({{"type":"response.cancel","id":"{}"}})", lane_),
                  0x5A17C0DE);
  return out;
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
      case ws_reader::kind::refused:
        h = {};
        h.is = kind::failed;
        h.why = fmt::format("upgrade refused: {}", got.code);
        with_object(got.payload, [&](const json::object& o) { h.why.append(" ").append(error_text(o)); });
        return true;
      case ws_reader::kind::closed:
        h = {};
        h.is = kind::closed;
        h.why = fmt::format("closed by the server with {}", got.code);
        return true;
      case ws_reader::kind::broken:
        h = {};
        h.is = kind::failed;
        h.why = fmt::format("not a WebSocket: {}", got.payload);
        return true;
    }
  }
}

bool weir_talk::ended(happening& h) {
  h = {};
  h.is = kind::failed;
  h.why = "the connection was lost";
  return std::exchange(open_, false);
}

bool weir_talk::understand(std::string_view message, happening& h) {
  h = {};
  if (const auto d = read_plain(message)) {
    if (!open_ || d->id != lane_) return false;
    h.is = kind::tokens;
    h.n = static_cast<std::uint32_t>(d->n.value_or(1));
    h.seq = static_cast<std::uint64_t>(d->seq.value_or(0));
    h.sampled = d->sampled;
    h.text = d->text;
    return true;
  }
  bool means = false;
  const bool is_object = with_object(message, [&](const json::object& o) {
    const auto type = string_of(o, "type");
    const bool ours = open_ && string_of(o, "id") == lane_;
    if (type == "response.delta" && ours) {
      h.is = kind::tokens;
      h.n = static_cast<std::uint32_t>(number_of(o, "n").value_or(1));
      h.seq = count_of(o, "seq");
      h.sampled = number_of(o, "t");
      text_ = string_of(o, "delta");
      h.text = text_;
      means = true;
    } else if (type == "response.done" && ours) {
      const auto status = string_of(o, "status");
      open_ = false;
      h.is = status == "failed" ? kind::failed : kind::done;
      h.seq = count_of(o, "seq");
      h.cancelled = status == "cancelled";
      if (const auto* usage = object_of(o, "usage")) {
        h.input_tokens = count_of(*usage, "input_tokens");
        h.output_tokens = count_of(*usage, "output_tokens");
      }
      if (h.is == kind::failed) h.why = error_text(o);
      means = true;
    } else if (type == "session.created") {
      h.is = kind::opened;
      means = true;
    } else if (type == "error") {
      h.is = ours ? kind::refused : kind::failed;
      h.why = error_text(o);
      open_ = false;
      means = true;
    }
  });
  if (!is_object) {
    h.is = kind::failed;
    h.why = fmt::format("a frame that is no JSON object: {}", brief(message));
    return true;
  }
  return means;
}

// ---- OpenAI's streams

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
