#include "tests/stranger/inspector.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <thread>

#include "tests/stranger/random.h"
#include "tests/stranger/socket.h"

namespace weir::stranger {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t first_rounds = 10;
constexpr int honest_length = 12;
constexpr milliseconds longest_close{1000};
constexpr std::size_t filler_bytes = 8000;  // of a prompt, a token each
constexpr std::size_t fillers_at_once = 16, most_fillers = 100;  // prompts of a request, requests
constexpr int looks = 4;  // each must find all threads waiting
constexpr milliseconds between_looks{5};

// One request on a connection of its own, and everything that comes back; empty: not in time.
std::string ask(std::uint16_t port, std::string_view request, clock::time_point until) {
  socket s(loopback, port, false);
  std::string got;
  std::array<char, 16 * 1024> bytes;
  while (s.is_open() && clock::now() < until) {
    pollfd p{s.fd(), static_cast<short>(request.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    if (poll(&p, 1, 50) <= 0) continue;
    if (!request.empty() && (p.revents & POLLOUT)) request.remove_prefix(s.send(request).bytes);
    if (!(p.revents & (POLLIN | POLLHUP | POLLERR))) continue;
    const auto more = s.receive(bytes);
    got.append(bytes.data(), more.bytes);
    if (more.now == socket::state::over) return got;
  }
  return {};
}

std::string as(const std::string& key) { return key.empty() ? key : "Authorization: Bearer " + key + "\r\n"; }

std::string request_text(const target& t, std::size_t number, std::string_view line, std::string_view body) {
  std::string r = std::string(line) + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  if (!t.keys.empty()) r += as(t.keys[number % t.keys.size()]);
  if (body.empty()) return r + "\r\n";
  return r + "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

// The number behind `name` in the object that `inside` opens, or -1.
long number_in(const std::string& json, std::string_view inside, std::string_view name) {
  auto at = json.find(inside);
  if (at != json.npos) at = json.find("\"" + std::string(name) + "\":", at);
  return at == json.npos ? -1 : std::atol(json.c_str() + at + name.size() + 3);
}

std::string admin_request(const target& t, const std::string& line) {
  return line + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + as(t.admin_key) + "\r\n";
}

// The names of the models in the answer of /v1/admin/models, as parts of paths.
std::vector<std::string> model_names(const std::string& answer) {
  constexpr std::string_view mark = "{\"name\":\"";
  std::vector<std::string> names;
  for (auto at = answer.find(mark); at != answer.npos; at = answer.find(mark, at)) {
    std::string name;
    for (at += mark.size(); at < answer.size() && answer[at] != '"'; ++at) {
      if (answer[at] == '\\') ++at;
      char escaped[4];
      std::snprintf(escaped, sizeof escaped, "%%%02X", static_cast<unsigned char>(answer[at]));
      name += escaped;
    }
    names.push_back(name);
  }
  return names;
}

std::string megabytes(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

std::string inspector::see_baseline() {
  tokens_.clear();
  if (auto wrong = server_.at().model == "sim" ? fill_cache() : ""; !wrong.empty()) return wrong;
  if (auto wrong = honest_tokens(); !wrong.empty()) return wrong;
  std::this_thread::sleep_for(milliseconds(300));
  descriptors_ = server_.descriptors();
  return {};
}

// Prompts that share nothing, until the pool has hardly a free page left.
std::string inspector::fill_cache() {
  random_source draw(options_.seed);
  std::string stats;
  for (std::size_t n = 0; n < most_fillers; ++n) {
    const auto until = clock::now() + std::chrono::seconds(options_.patience_s);
    stats = ask(server_.at().port, request_text(server_.at(), asked_, "GET /v1/stats", ""), until);
    const long total = number_in(stats, "\"pages\":{", "total"),
               free = number_in(stats, "\"pages\":{", "free");
    if (total > 0 && free <= total / 50) return {};
    std::string prompts;
    for (std::size_t k = 0; k < fillers_at_once; ++k) {
      prompts += k == 0 ? "\"" : ",\"";
      for (std::size_t b = 0; b < filler_bytes; ++b) prompts += static_cast<char>('a' + draw.below(26));
      prompts += '"';
    }
    const std::string body = R"({"model":"sim","max_tokens":1,"prompt":[)" + prompts + "]}";
    const auto got =
        ask(server_.at().port, request_text(server_.at(), asked_, "POST /v1/completions", body), until);
    if (!got.starts_with("HTTP/1.1 200 ")) return "long prompts got: " + got.substr(0, 500);
  }
  return "the cache of prefixes does not fill:\n" + stats;
}

void inspector::begin_round() {
  server_.forget_peak();
  before_ = server_.resident();
}

std::string inspector::after_round(std::size_t surge) {
  const auto until = clock::now() + std::chrono::seconds(options_.patience_s);
  ++asked_;
  std::string wrong;
  do {
    if (!server_.lives()) return server_.end_in_words();
    if (auto report = server_.sanitizer_report(); !report.empty()) return report;
    busy_.clear();
    wrong = not_yet();
    if (wrong.empty()) break;
    std::this_thread::sleep_for(milliseconds(20));
  } while (clock::now() < until);
  if (!server_.lives()) return server_.end_in_words();
  if (!busy_.empty()) wrong += "; " + server_.look_into(busy_);
  if (wrong.empty()) wrong = memory(surge);
  resident_.push_back(server_.resident());
  return wrong;
}

std::string inspector::not_yet() {
  const auto patience = clock::now() + std::chrono::seconds(options_.patience_s);
  const std::string live = ask(server_.at().port, request_text({}, 0, "GET /health/live", ""), patience);
  if (!live.starts_with("HTTP/1.1 200 ")) return "/health/live said: " + live.substr(0, 300);
  if (auto wrong = guests_gone(); !wrong.empty()) return wrong;
  if (auto wrong = stats_at_rest(); !wrong.empty()) return wrong;
  if (auto wrong = honest_tokens(); !wrong.empty()) return wrong;
  if (auto wrong = descriptors_closed(); !wrong.empty()) return wrong;
  return threads_at_rest();
}

// The server closes its end of a connection a moment after the inspector, so the last question's may be open.
std::string inspector::descriptors_closed() {
  const auto until = clock::now() + longest_close;
  while (server_.descriptors() > descriptors_) {
    if (clock::now() > until) {
      return std::to_string(server_.descriptors()) + " descriptors are open, and " +
             std::to_string(descriptors_) + " were at the beginning; connections:\n" + server_.connections();
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  return {};
}

// Work for clients that are gone must end too. Otherwise its allocations would count for the next round.
std::string inspector::threads_at_rest() {
  for (int look = 0; look < looks; ++look) {
    std::this_thread::sleep_for(between_looks);
    busy_ = server_.busy_thread();
    if (!busy_.empty()) return "the thread " + busy_ + " works, and no client is there";
  }
  return {};
}

std::string inspector::stats_at_rest() {
  const auto patience = clock::now() + std::chrono::seconds(options_.patience_s);
  const std::string stats =
      ask(server_.at().port, request_text(server_.at(), asked_, "GET /v1/stats", ""), patience);
  const struct {
    std::string_view inside, name;
  } numbers[] = {{"\"jobs\":{", "queued"},     {"\"jobs\":{", "prefilling"}, {"\"jobs\":{", "decoding"},
                 {"\"jobs\":{", "paused"},     {"\"pages\":{", "used"},      {"{", "sessions"},
                 {"\"client_lag\":{", "bytes"}};
  for (const auto& n : numbers) {
    const long value = number_in(stats, n.inside, n.name);
    if (value != 0)
      return "/v1/stats: " + std::string(n.name) + " is " + std::to_string(value) + ":\n" + stats;
  }
  return {};
}

// A round may leave it asleep: an order wakes it, so that no honest job has to wait for that.
std::string inspector::own_model_awake(const std::string& all) {
  const std::string& model = server_.at().model;
  if (all.find("{\"name\":\"" + model + "\",\"state\":\"asleep\"") == all.npos) return {};
  const auto patience = clock::now() + std::chrono::seconds(options_.patience_s);
  target admin = server_.at();
  if (!admin.keys.empty()) admin.keys = {admin.admin_key};
  const auto wake = request_text(admin, 0, "POST /v1/admin/models/" + model, R"({"action":"wake"})");
  const auto said = ask(admin.port, wake, patience);
  return said.starts_with("HTTP/1.1 200 ") ? "" : "the server's own model sleeps on: " + said.substr(0, 500);
}

// An order that a stranger gave may still be carried out: the next one is refused as busy until then.
std::string inspector::guests_gone() {
  const auto patience = clock::now() + std::chrono::seconds(options_.patience_s);
  const auto list = [&] {
    return ask(server_.at().port, admin_request(server_.at(), "GET /v1/admin/models"), patience);
  };
  std::string base;
  for (const unsigned char c : server_.at().model) {
    char escaped[4];
    std::snprintf(escaped, sizeof escaped, "%%%02X", c);
    base += escaped;
  }
  bool served = false;
  const std::string all = list();
  std::string wrong = own_model_awake(all);
  for (const auto& name : model_names(all)) {
    if (name == base) {
      served = true;
      continue;
    }
    const auto said =
        ask(server_.at().port, admin_request(server_.at(), "DELETE /v1/admin/models/" + name), patience);
    if (!said.starts_with("HTTP/1.1 200 ")) wrong = "a stranger's model stays: " + said.substr(0, 500);
  }
  return served ? wrong : "the server's own model is gone";
}

// The same prompt at temperature 0 with the same seed: whatever the neighbours do, the same tokens.
std::string inspector::honest_tokens() {
  const std::string body =
      R"({"model":")" + server_.at().model + R"(","prompt":"The river","max_tokens":)" +
      std::to_string(honest_length) +
      R"(,"temperature":0,"seed":7,"ignore_eos":true,"stream":true,"return_token_ids":true})";
  const auto patience = clock::now() + std::chrono::seconds(options_.patience_s);
  const std::string got =
      ask(server_.at().port, request_text(server_.at(), asked_, "POST /v1/completions", body), patience);
  constexpr std::string_view mark = "\"token_ids\":[";
  std::string ids;
  for (auto at = got.find(mark); at != got.npos; at = got.find(mark, at + 1)) {
    const auto from = at + mark.size();
    const std::string some = got.substr(from, got.find(']', from) - from);
    if (!some.empty()) ids += some + ",";
  }
  const auto n = std::count(ids.begin(), ids.end(), ',');
  if (n != honest_length || got.find("data: [DONE]") == got.npos) {
    return "an honest job got " + std::to_string(n) + " tokens, not " + std::to_string(honest_length) +
           ":\n" + got.substr(0, 4000);
  }
  if (tokens_.empty()) tokens_ = ids;
  return ids == tokens_ ? "" : "an honest job got the tokens " + ids + " and not " + tokens_;
}

std::string inspector::memory(std::size_t surge) {
  const std::size_t now = server_.resident(), peak = server_.peak();
  if (options_.resident && peak > options_.resident) {
    return megabytes(peak) + " were resident, and at most " + megabytes(options_.resident) + " should be";
  }
  if (peak > before_ + surge) {
    return "resident memory went from " + megabytes(before_) + " to " + megabytes(peak) + " (now " +
           megabytes(now) + ") in one round, and should grow by at most " + megabytes(surge);
  }
  return {};
}

std::string inspector::after_all() const {
  if (resident_.size() < 2 * first_rounds) return {};  // too few to tell growth from warming up
  const std::size_t first = *std::max_element(resident_.begin(), resident_.begin() + first_rounds);
  std::vector<std::size_t> last(resident_.end() - static_cast<std::ptrdiff_t>(resident_.size() / 4),
                                resident_.end());
  std::nth_element(last.begin(), last.begin() + static_cast<std::ptrdiff_t>(last.size() / 2), last.end());
  const std::size_t median = last[last.size() / 2];
  if (median <= first + options_.growth) return {};
  return "resident memory is " + megabytes(median) + " in the last quarter of " +
         std::to_string(resident_.size()) + " rounds, and was " + megabytes(first) +
         " in the first ten: more than " + megabytes(options_.growth) + " over it";
}

}  // namespace weir::stranger
