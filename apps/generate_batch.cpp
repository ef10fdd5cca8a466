#include "apps/generate_batch.h"

#include <unistd.h>

#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/json.hpp>
#include <csignal>
#include <cstdio>
#include <deque>
#include <iostream>
#include <istream>

#include "apps/answer.h"
#include "apps/commands.h"
#include "core/json_line.h"
#include "net/protocol/request_fields.h"
#include "net/protocol/ws_protocol.h"

namespace weir::apps {
namespace {

namespace json = boost::json;
using phase = actors::job_stream::phase;

// What a line may call its prompt: `input` is weir.v1's name, the others are those of OpenAI's bodies.
constexpr const char* prompt_names[] = {"input", "prompt", "messages"};

// Error: the value is not of the kind that its name says. `input` is judged by weir.v1's parser.
core::result<> check_prompt(std::string_view name, const json::value& v) {
  if (name == "messages") {
    std::vector<core::grammar::warning> dropped;  // named again by weir.v1's parser
    if (const auto read = net::read_messages(name, v, dropped); !read) return read.error();
  } else if (name == "prompt" && !v.is_string()) {
    if (!v.is_array())
      return core::bad_param("prompt", "prompt must be a string or token ids, not {}", net::kind_of(v));
    if (const auto read = net::read_token_ids(name, v); !read) return read.error();
  }
  return {};
}

// Renames the member of `o` that is the prompt to `input`. Returns the member's own name.
core::result<std::string> take_input(json::object& o) {
  std::string name;
  for (const char* known : prompt_names) {
    if (!o.contains(known)) continue;
    if (!name.empty()) return core::bad_param(known, "{} and {}: a line has only one", name, known);
    name = known;
  }
  if (name.empty()) return core::bad_param("input", "input, prompt or messages is missing");
  json::value prompt = std::move(o[name]);
  if (auto fine = check_prompt(name, prompt); !fine) return fine.error();
  o.erase(name);
  o["input"] = std::move(prompt);
  return name;
}

class batch {
 public:
  batch(local_service& local, std::istream& in, std::size_t at_once)
      : local_(local),
        in_(in),
        at_once_(at_once),
        interrupt_(local.io(), SIGINT, SIGTERM),
        tick_(local.io()) {}

  int run() {
    interrupt_.async_wait([this](auto ec, int) {
      if (ec) return;
      interrupted_ = true;
      for (auto& l : lines_)
        if (l.stream) l.stream->cancel();
    });
    show_progress();
    more();
    local_.io().run();
    if (interrupted_) return exit_code::interrupted;
    return failed_ ? exit_code::bad_usage : exit_code::done;
  }

 private:
  struct line {
    json::value id;
    std::shared_ptr<actors::job_stream> stream;
    json::object result;
    std::vector<std::string> ignored;  // unknown fields
    bool ready = false;
  };

  // Starts jobs until `at_once` are under way. The run ends at the end of the file, with the last result.
  void more() {
    std::string text;
    while (!interrupted_ && running_ < at_once_ && lines_.size() < 4 * at_once_ && std::getline(in_, text)) {
      ++number_;
      if (text.find_first_not_of(" \t\r") == text.npos) continue;
      start(text);
    }
    write_ready();
    if (running_ != 0 || !lines_.empty()) return;
    interrupt_.cancel();
    tick_.cancel();
    if (terminal_) std::fprintf(stderr, "\n");
  }

  void start(const std::string& text) {
    auto& l = lines_.emplace_back();
    auto request = parse(text, l);
    if (!request) {
      l.result = answer_of(request.error());
      l.ready = failed_ = true;
      return;
    }
    ++running_;
    l.stream = local_.get().submit(std::move(*request), local_.io().get_executor(), [this, &l] { news(l); });
  }

  core::result<actors::request> parse(const std::string& text, line& l) {
    json::error_code ec;
    auto value = json::parse(text, ec);
    auto* o = ec ? nullptr : value.if_object();
    if (!o) return core::bad_param("", "line {}: not a JSON object", number_);
    if (const auto* given = o->if_contains("id")) l.id = *given;
    const auto name = take_input(*o);
    if (!name) return at_line(name.error());
    (*o)["type"] = "response.create";
    (*o)["id"] = "line";
    auto message = net::ws::parse(json::serialize(*o));
    auto* create = std::get_if<net::ws::response_create>(&message);
    if (!create) {
      const auto& e = std::get<net::ws::protocol_error>(message);
      return at_line(core::bad_param(e.param, "{}", e.message));
    }
    create->request.input_param = *name;
    l.ignored = std::move(create->ignored);
    return std::move(create->request);
  }

  core::error at_line(core::error e) const {
    e.message = fmt::format("line {}: {}", number_, e.message);
    return e;
  }

  void news(line& l) {
    if (l.ready || (l.stream->state() != phase::done && l.stream->state() != phase::refused)) return;
    l.result = answer_of(*l.stream);
    l.ready = true;
    failed_ |= l.result.contains("error");
    if (l.stream->state() == phase::done) tokens_ += l.stream->ended().output_tokens;
    --running_;
    ++ended_;
    more();
  }

  // Writes the results at the front that are complete. Lines are in a deque, which does not move them, since
  // the callback of a stream refers to its line.
  void write_ready() {
    while (!lines_.empty() && lines_.front().ready) {
      auto& l = lines_.front();
      json::object out;
      if (!l.id.is_null()) out["id"] = l.id;
      for (auto& [key, v] : l.result) out[key] = std::move(v);
      if (!l.ignored.empty()) out["ignored"] = json::value_from(l.ignored);
      std::cout << core::json_line(out) << '\n';
      done_streams_.push_back(std::move(l.stream));  // kept for now, because its callback may be running
      lines_.pop_front();
    }
    std::cout.flush();
  }

  void show_progress() {
    done_streams_.clear();
    const auto s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    if (terminal_ && s > 0)
      std::fprintf(stderr, "\r%zu done, %zu running, %.0f tok/s ", ended_, running_,
                   static_cast<double>(tokens_) / s);
    tick_.expires_after(std::chrono::milliseconds(500));
    tick_.async_wait([this](auto ec) {
      if (!ec) show_progress();
    });
  }

  local_service& local_;
  std::istream& in_;
  const std::size_t at_once_;
  boost::asio::signal_set interrupt_;
  boost::asio::steady_timer tick_;
  const bool terminal_ = isatty(STDERR_FILENO);
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::deque<line> lines_;
  std::vector<std::shared_ptr<actors::job_stream>> done_streams_;
  std::size_t number_ = 0, running_ = 0, ended_ = 0;
  std::uint64_t tokens_ = 0;
  bool interrupted_ = false, failed_ = false;
};

}  // namespace

int generate_batch(local_service& local, std::istream& requests, std::size_t at_once) {
  return batch(local, requests, at_once).run();
}

}  // namespace weir::apps
