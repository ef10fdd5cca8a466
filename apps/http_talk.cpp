#include "apps/http_talk.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>

#include "net/load/http_wire.h"
#include "net/load/line.h"

namespace weir::apps {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t most_body = 4 << 20;

// Takes pieces of an answer until it is whole. True: it is.
bool take(load::http_reader& reader, std::string_view bytes, http_talk::said& out) {
  using kind = load::http_reader::kind;
  reader.feed(bytes);
  for (auto i = reader.next(); i.is != kind::more; i = reader.next()) {
    if (i.is == kind::head) out.status = i.status;
    if (i.is == kind::data) out.body += i.bytes;
    if (out.body.size() > most_body || i.is == kind::broken) {
      out = {0, i.is == kind::broken ? "the server does not speak HTTP" : "the answer is too long"};
      return true;
    }
    if (i.is == kind::end) return true;
  }
  return false;
}

load::task<void> talk(load::line& line, const load::endpoints& to, std::string request,
                      http_talk::said& out) {
  load::http_reader reader;
  error_code ec = co_await line.open(to, 0);
  if (ec) {
    out.body = "nobody answers there: " + ec.message();
    co_return;
  }
  ec = co_await line.write(request);
  std::array<char, 16384> bytes;
  const asio::mutable_buffer into = asio::buffer(bytes);
  http_talk::said got;
  for (bool whole = false; !ec && !whole;) {
    const std::size_t n = co_await line.read(into, ec);
    whole = take(reader, std::string_view(bytes.data(), n), got);
    if (whole) out = std::move(got);
  }
  if (ec && out.body.empty()) out.body = "the connection was lost: " + ec.message();
}

// Ends a wait that is too long.
class watchman {
 public:
  watchman(load::timer& t, load::line& line, http_talk::said& out, const std::function<bool()>& goes_on)
      : timer_(t), line_(line), out_(out), goes_on_(goes_on) {
    wait();
  }
  void end() {
    over_ = true;
    timer_.cancel();
  }

 private:
  void wait() {
    timer_.expires_after(goes_on_ ? between_looks : std::chrono::milliseconds(http_talk::usual_patience));
    timer_.async_wait([this](error_code ec) {
      if (ec || over_) return;
      if (goes_on_ && goes_on_()) return wait();
      out_ = {0, goes_on_ ? "the wait was given up" : "the server is silent"};
      line_.cut();
    });
  }

  static constexpr std::chrono::milliseconds between_looks{500};
  load::timer& timer_;
  load::line& line_;
  http_talk::said& out_;
  const std::function<bool()>& goes_on_;
  bool over_ = false;
};

}  // namespace

core::result<http_talk> http_talk::to(const std::string& url, std::string key) {
  auto target = load::parse_url("url", url);
  if (!target) return target.error();
  if (target->speaks == load::protocol::weir) return core::bad_param("url", "--url {}: not http(s)://", url);
  auto at = load::place::find(*target, false);
  if (!at) return at.error();
  if (target->path == "/v1/completions") target->path.clear();  // what a URL without a path gets
  while (target->path.ends_with('/')) target->path.pop_back();
  if (target->path.ends_with("/v1")) target->path.resize(target->path.size() - 3);
  return http_talk(std::move(*target), std::move(*at), std::move(key));
}

http_talk::said http_talk::ask(std::string_view path, std::string_view body,
                               const std::function<bool()>& goes_on) {
  said out;
  asio::io_context io(1);
  load::line line(io, at_->tls.get(), to_.host);
  load::timer timer(io);
  watchman watch(timer, line, out, goes_on);
  std::string request = load::http_request(to_.authority(), to_.path + std::string(path), body, key_);
  asio::co_spawn(io, talk(line, at_->addresses, std::move(request), out), [&](std::exception_ptr) {
    watch.end();
    line.cut();
  });
  io.run();
  return out;
}

}  // namespace weir::apps
