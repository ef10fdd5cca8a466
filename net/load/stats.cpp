#include "net/load/stats.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/json/parse.hpp>

#include "net/load/http_wire.h"

namespace weir::load {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// The body of an answer with status 200; nullopt for any other.
task<void> get(line& server, const endpoints& at, std::string request, std::optional<std::string>& out) {
  error_code ec = co_await server.open(at, 0);
  if (!ec) ec = co_await server.write(request);
  http_reader answer;
  std::string body;
  char bytes[4096];
  int status = 0;
  while (!ec) {
    const std::size_t n = co_await server.read(asio::buffer(bytes), ec);
    answer.feed({bytes, n});
    for (auto got = answer.next(); got.is != http_reader::kind::more; got = answer.next()) {
      if (got.is == http_reader::kind::head) status = got.status;
      if (got.is == http_reader::kind::data) body += got.bytes;
      if (got.is == http_reader::kind::broken) co_return;
      if (got.is != http_reader::kind::end) continue;
      if (status == 200) out = std::move(body);
      co_return;
    }
  }
}

std::uint64_t count(const boost::json::object& o, const char* name) {
  const auto* v = o.if_contains(name);
  error_code ec;
  return v && v->is_number() ? v->to_number<std::uint64_t>(ec) : 0;
}

}  // namespace

std::optional<server_stats> read_stats(std::string_view text) {
  error_code ec;
  const auto v = boost::json::parse({text.data(), text.size()}, ec);
  if (ec || !v.is_object()) return std::nullopt;
  const auto& o = v.get_object();
  const auto* jobs = o.if_contains("jobs");
  if (!jobs || !jobs->is_object() || !o.contains("rss_bytes")) return std::nullopt;
  server_stats s;
  for (const char* state : {"queued", "prefilling", "decoding", "paused"})
    s.jobs += count(jobs->get_object(), state);
  s.rss_bytes = count(o, "rss_bytes");
  if (const auto* closed = o.if_contains("closed"); closed && closed->is_object())
    s.slow_closed = count(closed->get_object(), "4440");
  if (const auto* sent = o.if_contains("sampled_to_sent_ms"); sent && sent->is_object()) {
    const auto* p99 = sent->get_object().if_contains("p99");
    if (p99 && p99->is_number()) s.sent_p99_ms = p99->to_number<double>();
  }
  return s;
}

std::optional<server_stats> ask_stats(const target& of, const endpoints& at, asio::ssl::context* tls,
                                      const std::string& key) {
  asio::io_context io(1);
  line server(io, tls, of.host);
  std::optional<std::string> body;
  asio::co_spawn(io, get(server, at, http_request(of.authority(), "/v1/stats", {}, key), body),
                 asio::detached);
  io.run_for(std::chrono::seconds(2));
  server.cut();
  io.restart();
  io.run();
  return body ? read_stats(*body) : std::nullopt;
}

}  // namespace weir::load
