#include <boost/json/serialize.hpp>

#include "apps/chat/remote_answer.h"
#include "core/text/chat/thinking.h"
#include "net/load/http_wire.h"
#include "net/load/talk_fields.h"

namespace weir::apps {
namespace {

namespace json = boost::json;
using namespace load::fields;
using kind = load::http_reader::kind;

class openai_reader final : public remote_answer {
 public:
  openai_reader(const load::target& to, std::string_view key, json::object fields,
                const json::array& messages) {
    fields["messages"] = messages;
    fields["stream"] = true;
    fields["stream_options"] = json::object{{"include_usage", true}};
    hello_ = load::http_request(to.authority(), to.path, json::serialize(fields), key);
  }

  std::string hello() override { return hello_; }
  std::string cancel() override { return {}; }
  void show_rest(const peer::on_text& show) override { parts_.end(show); }

  std::string take(std::string_view bytes, const peer::on_text& show) override {
    reader_.feed(bytes);
    while (!over_) {
      const auto got = reader_.next();
      if (got.is == kind::more) break;
      if (got.is == kind::broken) fail("the server sent " + std::string(got.bytes));
      if (got.is == kind::head) status_ = got.status;
      if (got.is == kind::data && status_ == 200) read_events(got.bytes, show);
      if (got.is == kind::data && status_ != 200 && body_.size() < most_body) body_ += got.bytes;
      if (got.is == kind::end) end();
    }
    return {};
  }

 private:
  static constexpr std::size_t most_body = 64 * 1024;  // of a refusal

  void read_events(std::string_view bytes, const peer::on_text& show) {
    events_.feed(bytes);
    while (const auto data = events_.next()) {
      if (*data == "[DONE]") {
        over_ = true;
        return;
      }
      if (!with_object(*data, [&](const json::object& o) { understand(o, show); }))
        return fail("the server sent an event that is no JSON");
    }
    if (events_.too_long()) fail("the server sent an event too long");
  }

  void understand(const json::object& o, const peer::on_text& show) {
    if (object_of(o, "error")) return refused(o);
    if (const auto* usage = object_of(o, "usage")) {
      how_.input_tokens = count_of(*usage, "prompt_tokens");
      how_.output_tokens = count_of(*usage, "completion_tokens");
      if (const auto* details = object_of(*usage, "prompt_tokens_details"))
        how_.cached_tokens = count_of(*details, "cached_tokens");
    }
    const auto* choices = o.if_contains("choices");
    const auto* list = choices ? choices->if_array() : nullptr;
    const auto* first = list && !list->empty() ? list->front().if_object() : nullptr;
    if (first) how_.cut |= string_of(*first, "finish_reason") == "length";
    const auto* delta = first ? object_of(*first, "delta") : nullptr;
    if (!delta) return;
    for (const char* name : {"reasoning_content", "reasoning"})
      if (const auto text = string_of(*delta, name); !text.empty()) show(text, true);
    if (const auto text = string_of(*delta, "content"); !text.empty()) parts_.take(text, show);
  }

  void refused(const json::object& o) {
    const auto* e = object_of(o, "error");
    for (const char* name : {"code", "type"}) {
      const auto code = string_of(e ? *e : o, name);
      how_.too_long |= code == "prompt_too_long" || code == "context_length_exceeded";
    }
    const auto message = string_of(e ? *e : o, "message");
    fail(message.empty() ? fmt::format("the server answered {}", status_) : std::string(message));
  }

  // The body has ended.
  void end() {
    if (status_ == 200) return fail("the answer ended in the middle");
    if (!with_object(body_, [&](const json::object& o) { refused(o); }))
      fail(fmt::format("the server answered {}", status_));
  }

  std::string hello_, body_;
  load::http_reader reader_;
  load::sse_reader events_;
  core::thinking_splitter parts_;  // not every server tells reasoning from its answers
  int status_ = 0;
};

}  // namespace

std::unique_ptr<remote_answer> openai_answer(const load::target& to, std::string_view key,
                                             json::object fields, const json::array& messages) {
  return std::make_unique<openai_reader>(to, key, std::move(fields), messages);
}

}  // namespace weir::apps
