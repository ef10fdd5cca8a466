#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "apps/chat/peer.h"
#include "apps/local_service.h"

namespace weir::apps {
namespace {

using phase = actors::job_stream::phase;

class local_peer final : public peer {
 public:
  local_peer(const core::engine_settings& s, chat_manner m) : local_(s, 1), manner_(std::move(m)) {}

  int exit() const { return local_.exit(); }
  std::string name() override {
    const auto models = local_.get().models();
    return models.front().name + " on " + models.front().device;
  }

  answer_end ask(const boost::json::array& messages, const on_text& show) override {
    auto& io = local_.io();
    io.restart();
    auto until_it_ends = boost::asio::make_work_guard(io);
    boost::asio::signal_set interrupt(io, SIGINT);
    answer_end end;
    std::shared_ptr<actors::job_stream> stream;
    interrupt.async_wait([&](auto ec, int) {
      if (ec) return;
      end.stopped = true;
      stream->cancel();
    });
    std::uint32_t shown = 0;
    stream = local_.get().submit(request_of(messages), io.get_executor(), [&] {
      show_from(*stream, shown, show);
      if (stream->state() != phase::done && stream->state() != phase::refused) return;
      interrupt.cancel();
      until_it_ends.reset();
    });
    io.run();
    describe(*stream, end);
    return end;
  }

 private:
  actors::request request_of(const boost::json::array& messages) const {
    actors::request r;
    r.input_param = "messages";
    core::conversation said;
    said.messages = messages;
    r.input = std::move(said);
    r.max_tokens = manner_.max_tokens;
    r.sampling = manner_.sampling;
    r.separate_reasoning = true;
    return r;
  }

  static void show_from(const actors::job_stream& stream, std::uint32_t& shown, const on_text& show) {
    if (stream.published() <= shown) return;
    stream.log().each_part(shown, stream.published(), [&](const actors::part_piece& p) {
      if (!p.text.empty()) show(p.text, p.kind == core::part_kind::reasoning);
    });
    shown = stream.published();
  }

  static void describe(const actors::job_stream& stream, answer_end& end) {
    if (stream.state() == phase::refused) {
      end.error = stream.refusal().message;
      end.too_long = stream.refusal().code == core::errc::prompt_too_long;
      return;
    }
    const auto& how = stream.ended();
    if (how.fault) end.error = how.fault->message;
    end.cut = how.reason == core::finish_reason::length;
    end.input_tokens = how.input_tokens;
    end.output_tokens = how.output_tokens;
    end.cached_tokens = how.cached_tokens;
    end.first_ms = how.ttft_ms;
    end.whole_ms = how.ttft_ms + how.decode_ms;
  }

  local_service local_;
  const chat_manner manner_;
};

}  // namespace

std::unique_ptr<peer> open_local_peer(const core::engine_settings& s, chat_manner m, int& exit) {
  auto made = std::make_unique<local_peer>(s, std::move(m));
  exit = made->exit();
  if (exit != 0) return nullptr;
  return made;
}

}  // namespace weir::apps
