#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/json/parse.hpp>
#include <csignal>

#include "apps/chat/remote_answer.h"
#include "apps/http_talk.h"
#include "apps/sampling_options.h"
#include "core/shortened.h"
#include "net/load/line.h"
#include "net/load/ws_wire.h"

namespace weir::apps {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using boost::system::error_code;
using clock = std::chrono::steady_clock;

// A server that says nothing for so long is not waited for: before an answer may lie a long prompt.
constexpr std::chrono::seconds longest_connect{15}, longest_silence{300};
constexpr std::size_t most_answer = 16 << 20;  // bytes of text

double ms_since(clock::time_point t) {
  return std::chrono::duration<double, std::milli>(clock::now() - t).count();
}

// Calls `lost` where a wait is longer than it may be.
class patience {
 public:
  patience(load::timer& t, std::function<void(std::string)> lost) : timer_(t), lost_(std::move(lost)) {}

  // A new wait begins, and the last one is over.
  void begin(std::chrono::seconds most) {
    timer_.expires_after(most);
    timer_.async_wait([this, most](error_code ec) {
      if (!ec && !over_) lost_(fmt::format("the server was silent for {} s", most.count()));
    });
  }
  void end() {
    over_ = true;
    timer_.cancel();
  }

 private:
  load::timer& timer_;
  std::function<void(std::string)> lost_;
  bool over_ = false;
};

class remote_peer final : public peer {
 public:
  remote_peer(std::string key, json::object fields) : key_(std::move(key)), fields_(std::move(fields)) {}

  // Finds the server, its protocol and its model.
  core::result<> open(const std::string& url, const std::string& model) {
    auto to = load::parse_url("url", url);
    if (!to) return to.error();
    to_ = std::move(*to);
    if (to_.tls) {
      tls_.emplace(asio::ssl::context::tls_client);
      tls_->set_default_verify_paths();
      tls_->set_verify_mode(asio::ssl::verify_peer);
    }
    error_code ec;
    for (const auto& e : asio::ip::tcp::resolver(io_).resolve(to_.host, to_.port, ec))
      at_.push_back(e.endpoint());
    if (ec) return core::bad_param("url", "--url {}: {}", url, ec.message());
    if (auto found = choose_protocol(url); !found) return found;
    if (!model.empty()) fields_["model"] = model;
    return {};
  }

  std::string name() override {
    const std::string_view model =
        fields_.contains("model") ? std::string_view(fields_["model"].as_string()) : "";
    return fmt::format("{}{}{} at {}", core::shortened(model), model.empty() ? "" : " over ",
                       weir_ ? "weir.v1" : "OpenAI's protocol", to_.authority());
  }

  answer_end ask(const json::array& messages, const on_text& show) override {
    auto answer =
        weir_ ? weir_answer(to_, key_, fields_, messages) : openai_answer(to_, key_, fields_, messages);
    const auto began = clock::now();
    double first_ms = 0;
    std::size_t bytes = 0;
    const on_text timed = [&](std::string_view text, bool thought) {
      if (first_ms == 0) first_ms = ms_since(began);
      if ((bytes += text.size()) > most_answer) return answer->give_up("the answer is endless");
      show(text, thought);
    };
    exchange(*answer, timed);
    answer->how().first_ms = first_ms;
    answer->how().whole_ms = ms_since(began);
    return answer->how();
  }

 private:
  // Sends and reads until the answer is over. Ctrl-C cancels the answer.
  void exchange(remote_answer& answer, const on_text& show) {
    io_.restart();
    load::line to(io_, tls_ ? &*tls_ : nullptr, to_.host);
    asio::signal_set interrupt(io_, SIGINT);
    interrupt.async_wait([&](error_code ec, int) {
      if (ec) return;
      answer.how().stopped = true;
      to.interrupt();
    });
    load::timer silence(io_);
    patience wait(silence, [&](std::string why) {
      answer.give_up(std::move(why));
      to.cut();
    });
    asio::co_spawn(io_, talk(to, answer, show, wait), [&](std::exception_ptr) {
      interrupt.cancel();
      wait.end();
    });
    io_.run();
    answer.show_rest(show);
    answer.lost();
    if (answer.how().stopped) answer.how().error.clear();
  }

  load::task<void> talk(load::line& to, remote_answer& answer, const on_text& show, patience& wait) {
    bool told = false;  // the server knows that the answer is cancelled
    wait.begin(longest_connect);
    error_code ec = co_await to.open(at_, 0);
    wait.begin(longest_silence);
    std::string words = answer.hello();
    std::array<char, 16384> bytes;
    const asio::mutable_buffer into = asio::buffer(bytes);
    while (!ec && !answer.over()) {
      if (!words.empty()) ec = co_await to.write(words);
      words.clear();
      if (ec) break;
      const std::size_t n = co_await to.read(into, ec);
      wait.begin(longest_silence);
      words = answer.take(std::string_view(bytes.data(), n), show);
      if (ec != asio::error::operation_aborted || told) continue;
      told = true;
      const std::string cancel = answer.cancel();
      if (cancel.empty()) break;
      words += cancel;
      ec = error_code();
    }
    to.cut();
  }

  // A URL may name the stream of weir.v1 (ws://), OpenAI's chat completions, or the server alone, with or
  // without /v1.
  core::result<> choose_protocol(const std::string& url) {
    weir_ = to_.speaks == load::protocol::weir;
    if (weir_ || to_.chat()) return {};
    std::string base = to_.path == "/v1/completions" ? "" : to_.path;
    while (base.ends_with('/')) base.pop_back();
    if (base.ends_with("/v1")) base.resize(base.size() - 3);
    auto server = http_talk::to(url, key_);
    if (!server) return server.error();
    const auto models = server->ask("/v1/models");
    if (models.status == 0) return core::bad_param("url", "--url {}: nobody answers there", url);
    if (models.status == 401 || models.status == 403)
      return core::bad_param("api-key", "--url {}: the server wants another --api-key", url);
    weir_ = server->ask("/weir.js").status == 200;
    to_.path = base + (weir_ ? "/v1/stream" : "/v1/chat/completions");
    take_first_model(models.body);
    return {};
  }

  void take_first_model(std::string_view body) {
    error_code ec;
    const json::value list = json::parse(json::string_view(body.data(), body.size()), ec);
    const json::value* id = ec ? nullptr : list.find_pointer("/data/0/id", ec);
    if (id && id->is_string()) fields_["model"] = *id;
  }

  asio::io_context io_{1};
  std::optional<asio::ssl::context> tls_;
  load::target to_;
  load::endpoints at_;
  const std::string key_;
  json::object fields_;
  bool weir_ = false;
};

}  // namespace

core::result<std::unique_ptr<peer>> open_remote_peer(const std::string& url, std::string key,
                                                     std::string model, chat_manner m) {
  json::object fields = sampling_fields(m.sampling);
  if (m.max_tokens) fields["max_tokens"] = *m.max_tokens;
  auto made = std::make_unique<remote_peer>(std::move(key), std::move(fields));
  if (auto opened = made->open(url, model); !opened) return opened.error();
  return core::result<std::unique_ptr<peer>>(std::move(made));
}

}  // namespace weir::apps
