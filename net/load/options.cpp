#include "net/load/options.h"

#include <boost/json/parse.hpp>
#include <fstream>
#include <sstream>
#include <thread>

namespace weir::load {
namespace {

using core::bad_param;
using core::result;

result<std::string> read_file(const char* option, const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return bad_param(option, "--{} {}: cannot be read", option, name);
  return std::move(text).str();
}

// Parses a percentage, `10` or `10%`, into a fraction. `per_second`: `10%/s` is allowed too.
result<double> share(const char* option, std::string text, bool per_second = false) {
  if (text.empty()) return 0.0;
  const std::string typed = text;
  if (per_second && text.ends_with("/s")) text.resize(text.size() - 2);
  if (text.ends_with('%')) text.pop_back();
  double v = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec == std::errc() && end == text.data() + text.size() && v >= 0 && v <= 100) return v / 100;
  return bad_param(option, "--{} {}: no percentage from 0 to 100", option, typed);
}

// Reads a file with one prompt in each line; empty lines are ignored.
result<std::vector<std::string>> read_prompts(const std::string& file) {
  std::vector<std::string> prompts;
  if (file.empty()) return prompts;
  auto text = read_file("prompts", file);
  if (!text) return text.error();
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) prompts.push_back(line);
  }
  if (prompts.empty()) return bad_param("prompts", "--prompts {}: there is no prompt in it", file);
  return prompts;
}

// URL[,URL…]
result<manner> read_servers(const char* option, const std::string& urls) {
  manner m;
  std::vector<target> all;
  for (std::size_t at = 0; at <= urls.size();) {
    const auto end = std::min(urls.find(',', at), urls.size());
    auto to = parse_url(option, std::string_view(urls).substr(at, end - at));
    if (!to) return to.error();
    all.push_back(std::move(*to));
    at = end + 1;
  }
  const auto& first = all.front();
  for (const auto& one : all)
    if (one.tls != first.tls || one.speaks != first.speaks || one.path != first.path)
      return bad_param(option, "--{} {}: servers that stand for the same differ in scheme or path", option,
                       urls);
  if (all.size() > 1 && first.tls)
    return bad_param(option, "--{} {}: several servers are not supported over TLS", option, urls);
  m.to = first;
  m.also.assign(all.begin() + 1, all.end());
  return m;
}

result<manner> read_manner(const typed_options& o, const char* option, const std::string& url) {
  auto servers = read_servers(option, url);
  if (!servers) return servers;
  manner m = std::move(*servers);
  if (!o.protocol.empty()) {
    if (o.protocol != "weir" && o.protocol != "openai")
      return bad_param("protocol", "--protocol {}: not weir or openai", o.protocol);
    m.to.speaks = o.protocol == "weir" ? protocol::weir : protocol::openai;
    const bool default_path = m.to.path == "/v1/stream" || m.to.path == "/v1/completions";
    if (default_path) m.to.path = m.to.speaks == protocol::weir ? "/v1/stream" : "/v1/completions";
  }
  m.key = o.api_key;
  for (const unsigned char c : m.key)
    if (c <= ' ' || c >= 0x7F) return bad_param("api-key", "--api-key: a character that no header may have");
  m.model = o.model;
  if (o.extra.empty()) return m;
  boost::system::error_code ec;
  const auto extra = boost::json::parse(o.extra, ec);
  if (ec || !extra.is_object()) return bad_param("extra", "--extra: no JSON object");
  m.extra = extra.get_object();
  return m;
}

result<question_options> read_questions(const typed_options& o) {
  question_options q;
  const auto in = parse_range("prompt-tokens", o.prompt_tokens),
             out = parse_range("max-tokens", o.max_tokens);
  if (!in) return in.error();
  if (!out) return out.error();
  q.prompt_tokens = *in;
  q.max_tokens = *out;
  auto prompts = read_prompts(o.prompts);
  if (!prompts) return prompts.error();
  q.prompts = std::move(*prompts);
  q.distinct = o.distinct;
  q.seed = o.seed;
  if (o.trace.empty()) return q;
  const auto text = read_file("trace", o.trace);
  if (!text) return text.error();
  auto lengths = parse_trace(*text);
  if (!lengths) return lengths.error();
  q.lengths = std::move(*lengths);
  return q;
}

// Reads how streams are dropped, resumed, followed, paced and held back. Only weir.v1 has these options.
result<void> read_lives(const typed_options& o, run_options& r) {
  const auto one_of = [](const char* option, const std::string& value, const char* a, const char* b) {
    return value.empty() || value == a || value == b
               ? result<void>()
               : bad_param(option, "--{} {}: not {} or {}", option, value, a, b);
  };
  if (auto ok = one_of("pace", o.pace, "live", "even"); !ok) return ok;
  if (auto ok = one_of("on-lag", o.on_lag, "buffer", "pause"); !ok) return ok;
  if (!o.on_lag.empty() && !o.window)
    return bad_param("on-lag", "--on-lag without --window: a client without a window never lags");
  const std::pair<const char*, bool> named[] = {{"disconnect", !o.disconnect.empty()},
                                                {"follow", o.follow > 0},
                                                {"pace", !o.pace.empty()},
                                                {"window", o.window > 0}};
  for (const auto& [option, given] : named)
    if (given && r.how.to.speaks != protocol::weir)
      return bad_param(option, "--{}: only weir.v1 has it, not OpenAI's streams", option);
  r.resume = r.how.outlives = o.resume;
  r.followers = o.follow;
  r.how.pace = o.pace;
  r.how.on_lag = o.on_lag;
  r.how.window = o.window;
  return {};
}

// Decides between a closed loop, an open loop and the times of a trace.
result<void> read_loop(const typed_options& o, run_options& r) {
  const auto shape = parse_arrivals(o.arrivals);
  if (!shape) return shape.error();
  r.burstiness = *shape;
  r.streams = o.streams;
  r.rate = o.rate;
  if (o.streams && o.rate > 0)
    return bad_param("rate", "--rate and --streams: an open loop or a closed one, not both");
  const bool timed = !o.trace.empty() && r.ask.lengths.timed;
  if (!o.streams && !(o.rate > 0) && !timed) {
    if (!o.trace.empty())
      return bad_param("trace", "--trace {}: it has lengths and no times; say --streams or --rate, too",
                       o.trace);
    r.streams = 1;
  }
  return {};
}

boost::json::object shown(const typed_options& o, const run_options& r) {
  boost::json::object all{{"prompt_tokens", o.prompt_tokens},
                          {"max_tokens", o.max_tokens},
                          {"duration_s", r.duration_s},
                          {"warmup_s", r.warmup_s},
                          {"ramp_s", r.ramp_s},
                          {"threads", r.threads},
                          {"seed", r.seed}};
  if (r.streams) all["streams"] = r.streams;
  if (r.rate > 0) all["rate"] = r.rate, all["arrivals"] = o.arrivals;
  for (const auto& [name, value] : {std::pair{"trace", &o.trace},
                                    {"model", &o.model},
                                    {"prompts", &o.prompts},
                                    {"extra", &o.extra},
                                    {"slow_readers", &o.slow_readers},
                                    {"disconnect", &o.disconnect},
                                    {"cancel", &o.cancel},
                                    {"pace", &o.pace},
                                    {"on_lag", &o.on_lag},
                                    {"slo", &o.slo}})
    if (!value->empty()) all[name] = *value;
  if (!o.slow_readers.empty()) all["read_rate"] = o.read_rate;
  if (o.distinct) all["distinct"] = o.distinct;
  if (o.resume) all["resume"] = true;
  if (o.follow) all["follow"] = o.follow;
  if (o.window) all["window"] = o.window;
  return all;
}

}  // namespace

core::result<plan> resolve(const typed_options& o) {
  plan p;
  run_options& r = p.run;
  r.url = o.url;
  auto how = read_manner(o, "url", o.url);
  if (!how) return how.error();
  r.how = std::move(*how);
  if (auto ok = read_lives(o, r); !ok) return ok.error();
  auto ask = read_questions(o);
  if (!ask) return ask.error();
  r.ask = std::move(*ask);
  if (auto ok = read_loop(o, r); !ok) return ok.error();
  r.duration_s = o.duration;
  r.ramp_s = o.ramp;
  r.warmup_s = o.warmup >= 0 ? o.warmup : o.ramp;
  r.drain_s = o.drain;
  r.silence_s = o.timeout;
  const auto slow = share("slow-readers", o.slow_readers), cancel = share("cancel", o.cancel);
  const auto disconnect = share("disconnect", o.disconnect, true);
  for (const auto* one : {&slow, &cancel, &disconnect})
    if (!*one) return one->error();
  r.slow_share = *slow, r.cancel_share = *cancel, r.disconnect_per_s = *disconnect;
  r.read_rate = o.read_rate;
  const auto slo = parse_slo(o.slo);
  if (!slo) return slo.error();
  r.slo = *slo;
  for (const auto& text : o.conditions) {
    auto c = parse_condition(text);
    if (!c) return c.error();
    p.conditions.push_back(std::move(*c));
  }
  r.threads = o.threads ? o.threads : std::max(1u, std::min(4u, std::thread::hardware_concurrency() / 2));
  if (r.streams) r.threads = static_cast<unsigned>(std::min<std::size_t>(r.threads, r.streams));
  r.seed = o.seed;
  r.insecure = o.insecure;
  r.shown = shown(o, r);
  p.window_s = o.vs_window;
  if (o.vs.empty()) return p;
  if (!o.conditions.empty())
    return bad_param("assert", "--assert and --vs: a comparison is judged by its intervals");
  if (!o.html.empty()) return bad_param("html", "--html and --vs: the page shows one server");
  if (!r.streams && r.rate == 0)
    return bad_param("trace",
                     "--trace and --vs: windows have no place in a trace's times; say --streams or --rate");
  auto other = read_manner(o, "vs", o.vs);
  if (!other) return other.error();
  p.vs = r;
  p.vs->url = o.vs;
  p.vs->how = std::move(*other);
  if (auto ok = read_lives(o, *p.vs); !ok) return ok.error();
  return p;
}

}  // namespace weir::load
