// What waits for a client is in the account of clients' memory, on every route, and goes out in bounded
// pieces.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "net/http/http_sender.h"
#include "tests/support/http_client.h"
#include "tests/support/raw_client.h"
#include "tests/support/server_fixture.h"

namespace weir::tests::http_account_test {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr int least_receive_buffer = 1;

std::string post(std::string_view target, std::string_view body, std::string_view more = {}) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      "{}\r\n{}\r\n{}",
      target, body.size(), more, body);
}

server_options fast() {
  server_options o;
  o.sim = "rate=1000000,prefill=100000000";
  return o;
}

// A client that has sent a request and does not read the answer.
struct stalled_client {
  stalled_client(unsigned short port, std::string_view target, std::string_view body)
      : c(port, least_receive_buffer) {
    c.send(post(target, body));
  }
  raw_client c;
};

std::string text_of(std::size_t bytes) { return R"({"text":")" + std::string(bytes, 'x') + "\"}"; }

// Sizes of the chunks of a body, which begins behind the header.
std::vector<std::size_t> chunks_of(std::string_view answer) {
  std::vector<std::size_t> out;
  answer.remove_prefix(answer.find("\r\n\r\n") + 4);
  while (!answer.empty()) {
    const auto n = static_cast<std::size_t>(std::stoul(std::string(answer.substr(0, 10)), nullptr, 16));
    if (n == 0) break;
    out.push_back(n);
    answer.remove_prefix(answer.find("\r\n") + 2 + n + 2);
  }
  return out;
}

// Two ends of a connection; what is written to `near` waits for `far`.
struct connection {
  connection() {
    constexpr int buffer = 64 * 1024;
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    far.open(tcp::v4());
    far.set_option(asio::socket_base::receive_buffer_size(buffer));
    far.connect(acceptor.local_endpoint());
    near.socket() = acceptor.accept();
    near.socket().set_option(asio::socket_base::send_buffer_size(buffer));
    far.non_blocking(true);
  }
  void read_some() {
    boost::system::error_code ec;
    far.read_some(asio::buffer(into), ec);
    io.poll();
  }

  asio::io_context io;
  boost::beast::tcp_stream near{io};
  tcp::socket far{io};
  std::vector<char> into = std::vector<char>(1 << 20);
};

}  // namespace

TEST_CASE("http sender: what a write still has to send is in the account, and only while it has") {
  const auto account = std::make_shared<core::memory_account>();
  connection c;
  const net::server_limits limits;
  net::http_sender sender(c.near, limits, account);
  const std::string data(1 << 20, 'x');
  int written = 0;
  const auto writes = [&]() -> asio::awaitable<void> {
    co_await sender.write_bytes(data);
    ++written;
    net::whole_answer m = net::answer_of(net::json_reply(data), {}, {}, true);
    co_await sender.write(std::move(m));
    ++written;
    co_await sender.write_chunk(data, true);
    ++written;
  };
  asio::co_spawn(c.io, writes, asio::detached);
  c.io.poll();
  CHECK(written == 0);
  CHECK(account->used() == data.size());
  server_fixture::until([&] {
    c.read_some();
    return written == 3;
  });
  CHECK(written == 3);
  CHECK(account->used() == 0);
}

TEST_CASE("http account: an answer of /v1/tokenize that is not read is counted, and then refused") {
  server_fixture f(fast());
  const auto used = [&] { return f.service->memory()->used(); };
  constexpr std::size_t bytes = 1 << 20;
  {
    const stalled_client c(f.port(), "/v1/tokenize", text_of(bytes));
    f.until([&] { return used() >= bytes * sizeof(core::token_id); });
    f.service->memory()->set_limit(8 << 20);
    http_client second(f.port());
    const auto a = second.post("/v1/tokenize", text_of(bytes));
    CHECK(a.status == 429);
    CHECK(a.error().at("code") == "overloaded");
    CHECK(http_client(f.port()).post("/v1/tokenize", text_of(10)).status == 200);
  }
  f.until([&] { return used() == 0; });
}

TEST_CASE("http account: an answer of /v1/detokenize that is not read is counted") {
  server_fixture f(fast());
  constexpr std::size_t ids = 250'000;
  std::string body = R"({"ids":[104)";
  for (std::size_t i = 1; i < ids; ++i) body += ",104";
  body += "]}";
  {
    const stalled_client c(f.port(), "/v1/detokenize", body);
    constexpr std::size_t bytes_of_a_piece = 5;
    f.until([&] { return f.service->memory()->used() >= ids * bytes_of_a_piece; });
  }
  f.until([&] { return f.service->memory()->used() == 0; });
}

TEST_CASE("http account: a whole answer that is not read is counted, with what it was made of") {
  server_fixture f(fast());
  const std::string body = R"({"prompt":"x","max_tokens":20000,"n":4,"seed":1})";
  constexpr std::size_t tokens = 80'000, least_of_a_token = 16;
  http_client reader(f.port());
  const std::size_t answer = reader.post("/v1/completions", body).body().size();
  {
    const stalled_client c(f.port(), "/v1/completions", body);
    f.until([&] { return f.service->memory()->used() >= answer + tokens * least_of_a_token; });
  }
  f.until([&] { return f.service->memory()->used() <= net::connection_bytes + body.size(); });
}

TEST_CASE("http: long answers come in pieces that add up to the same") {
  server_fixture f(fast());
  raw_client c(f.port());
  c.send(post("/v1/tokenize", text_of(100'000)));
  c.send(post("/v1/tokenize", text_of(3)));
  c.finish();
  const std::string heard = c.read_to_end();
  const auto chunks = chunks_of(heard);
  CHECK(chunks.size() > 5);
  CHECK(*std::ranges::max_element(chunks) < net::body_parts::piece_bytes + 100);
  const auto whole = http_client(f.port()).post("/v1/tokenize", text_of(100'000)).json();
  CHECK(whole.at("ids").as_array().size() == 100'000);
  CHECK(whole.at("pieces").as_array() == boost::json::array(100'000, "w120 "));
  CHECK_THAT(heard, Catch::EndsWith(R"({"ids":[120,120,120],"pieces":["w120 ","w120 ","w120 "]})"));

  std::string ids = "[", text;
  for (int i = 0; i < 100'000; ++i) {
    ids += (i ? "," : "") + std::to_string(i % 3 ? 500 : 501);
    text += i % 3 ? "w500 " : "w501 ";
  }
  CHECK(
      http_client(f.port()).post("/v1/detokenize", "{\"ids\":" + ids + "]}").json().at("text").as_string() ==
      text);
}

TEST_CASE("http: a long body is answered before the request behind it, and its faults are named") {
  server_fixture f(fast());
  const std::string text(100'000, 'x');
  const std::string after =
      post("/v1/completions", R"({"prompt":"x","max_tokens":1})", "Connection: close\r\n");
  const std::pair<std::string, std::string> rows[] = {
      {post("/v1/completions", R"({"prompt":")" + text + R"(","n":0})"), "n must be in [1, 64], not 0"},
      {post("/v1/messages", R"({"max_tokens":3,"messages":[{"role":")" + text + "\"}]}"),
       "messages[0].role must be"},
      {post("/v1/completions", R"({"prompt":")" + text + R"(","max_tokens":1})"),
       R"("prompt_tokens":100000)"}};
  for (const auto& [request, answer] : rows) {
    raw_client c(f.port());
    c.send(request + after);
    const std::string& heard = c.read_to_end();
    const auto first = heard.find(answer), second = heard.find(R"("prompt_tokens":1,)");
    CHECK(first != heard.npos);
    CHECK(second != heard.npos);
    CHECK(first < second);
  }
  f.until([&] { return f.service->memory()->used() == 0; });
}

TEST_CASE("http: a client that leaves while its long body waits leaves nothing behind") {
  server_fixture f(fast());
  const std::string text(1'000'000, 'x');
  for (int i = 0; i < 8; ++i) {
    raw_client c(f.port());
    c.send(post("/v1/completions", R"({"prompt":")" + text + R"(","max_tokens":100000})"));
  }
  f.until([&] { return f.service->memory()->used() == 0 && f.service->stats().text.tasks == 0; });
  f.until_quiet();
}

TEST_CASE("http: what a stream's reader is behind by goes out in bounded pieces") {
  server_fixture f(fast());
  constexpr int receive_buffer = 32 * 1024;
  raw_client c(f.port(), receive_buffer);
  c.send_without_reading(post("/v1/completions", R"({"prompt":"x","max_tokens":40000,"n":2,"stream":true})",
                              "Connection: close\r\n"));
  f.until([&] {
    const auto jobs = f.list_jobs();
    return jobs.size() == 2 && std::ranges::all_of(jobs, [](const auto& j) { return j.state == "finished"; });
  });
  const auto chunks = chunks_of(c.read_to_end());
  CHECK(chunks.size() > 5);
  CHECK(*std::ranges::max_element(chunks) < 2 * net::body_parts::piece_bytes);
}

}  // namespace weir::tests::http_account_test
