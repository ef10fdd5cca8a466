#include <boost/json/serialize.hpp>
#include <random>

#include "apps/chat/remote_answer.h"
#include "net/load/talk_fields.h"
#include "net/load/ws_wire.h"

namespace weir::apps {
namespace {

namespace json = boost::json;
using namespace load::fields;
using kind = load::ws_reader::kind;

constexpr const char* lane = "chat";

class weir_reader final : public remote_answer {
 public:
  weir_reader(const load::target& to, std::string_view key, json::object fields, const json::array& messages)
      : nonce_(load::ws_nonce(random_())),
        reader_(nonce_),
        hello_(load::ws_request(to.authority(), to.path, nonce_, key)) {
    fields["type"] = "response.create";
    fields["id"] = lane;
    fields["input"] = messages;
    fields["on_disconnect"] = "cancel";
    fields["reasoning"] = "separate";
    create_ = json::serialize(fields);
  }

  std::string hello() override { return hello_; }
  std::string cancel() override {
    return framed(load::ws_opcode::text, fmt::format(R"({{"type":"response.cancel","id":"{}"}})", lane));
  }

  std::string take(std::string_view bytes, const peer::on_text& show) override {
    reader_.feed(bytes);
    std::string out;
    while (!over_) {
      const auto got = reader_.next();
      switch (got.is) {
        case kind::more:
          return out;
        case kind::upgraded:
          out += framed(load::ws_opcode::text, create_);
          break;
        case kind::message:
          understand(got.payload, show);
          break;
        case kind::ping:
          out += framed(load::ws_opcode::pong, got.payload);
          break;
        case kind::refused:
          refused(got);
          break;
        case kind::closed:
          fail(fmt::format("the server closed the connection with {}", got.code));
          break;
        case kind::broken:
          fail("the server sent " + std::string(got.payload));
          break;
      }
    }
    return out;
  }

 private:
  std::string framed(load::ws_opcode op, std::string_view payload) {
    std::string out;
    load::append_ws_frame(out, op, payload, static_cast<std::uint32_t>(random_()));
    return out;
  }

  void refused(const load::ws_reader::item& got) {
    std::string why = fmt::format("the server refused the connection with {}", got.code);
    with_object(got.payload, [&](const json::object& o) { why += ": " + error_text(o); });
    fail(std::move(why));
  }

  void understand(std::string_view message, const peer::on_text& show) {
    const bool read = with_object(message, [&](const json::object& o) {
      const auto type = string_of(o, "type");
      if (type == "response.delta") {
        show_parts(o, show);
      } else if (type == "response.done") {
        done(o);
      } else if (type == "error") {
        how_.too_long = string_of(o, "code") == "prompt_too_long";
        fail(std::string(string_of(o, "message")));
      }
    });
    if (!read) fail("the server sent a message that is no JSON");
  }

  // A frame has one part, or a list of them.
  static void show_parts(const json::object& o, const peer::on_text& show) {
    const auto* parts = o.if_contains("parts");
    const auto* list = parts ? parts->if_array() : nullptr;
    if (!list) return show_part(o, show);
    for (const json::value& part : *list)
      if (const auto* p = part.if_object()) show_part(*p, show);
  }
  static void show_part(const json::object& o, const peer::on_text& show) {
    if (const auto text = string_of(o, "delta"); !text.empty())
      show(text, string_of(o, "part") == "reasoning");
  }

  void done(const json::object& o) {
    over_ = true;
    if (const auto* usage = object_of(o, "usage")) {
      how_.input_tokens = count_of(*usage, "input_tokens");
      how_.output_tokens = count_of(*usage, "output_tokens");
      how_.cached_tokens = count_of(*usage, "cached_tokens");
    }
    how_.cut = string_of(o, "finish_reason") == "length";
    if (string_of(o, "status") == "failed") how_.error = error_text(o);
  }

  std::mt19937_64 random_{std::random_device{}()};  // before what is made with it
  const std::string nonce_;
  load::ws_reader reader_;
  std::string hello_, create_;
};

}  // namespace

std::unique_ptr<remote_answer> weir_answer(const load::target& to, std::string_view key, json::object fields,
                                           const json::array& messages) {
  return std::make_unique<weir_reader>(to, key, std::move(fields), messages);
}

}  // namespace weir::apps
