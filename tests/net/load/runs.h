// runs.h — whole runs of the harness against a scripted server, and what that server answers.
#pragma once

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>

#include "net/load/options.h"
#include "net/load/run.h"
#include "tests/net/load/scripted_server.h"

namespace weir::tests {

inline std::string id_of(const std::string& said) {
  const auto o = boost::json::parse(said).as_object();
  return std::string(o.at("id").as_string());
}
inline bool creates(const std::string& said) { return said.find("response.create") != said.npos; }
inline bool cancels(const std::string& said) { return said.find("response.cancel") != said.npos; }

inline std::string delta(const std::string& id, int seq) {
  return server_frame(fmt::format(R"({{"type":"response.delta","id":"{}","seq":{},"delta":"w","t":{}}})", id,
                                  seq, seq * 1000));
}
inline std::string done(const std::string& id, int seq, const char* status = "completed") {
  return server_frame(fmt::format(
      R"({{"type":"response.done","id":"{}","seq":{},"status":"{}","usage":{{"input_tokens":2,"output_tokens":{}}}}})",
      id, seq, status, seq));
}
inline std::string answer(const std::string& id, std::initializer_list<int> seqs) {
  std::string out;
  for (int s : seqs) out += delta(id, s);
  return out + done(id, *(seqs.end() - 1));
}

inline load::report run_at(const load::typed_options& o) {
  auto p = resolve(o);
  INFO((p ? "" : p.error().message));
  REQUIRE(p.has_value());
  auto at = load::place::find(p->run.how, p->run.insecure);
  REQUIRE(at.has_value());
  load::report r = load::run(p->run, **at, {}, [] { return false; });
  r.judge(p->conditions);
  return r;
}

inline load::typed_options closed(const std::string& url, std::size_t streams) {
  load::typed_options o;
  o.url = url;
  o.streams = streams;
  o.duration = 0.4;
  o.threads = 2;
  return o;
}

}  // namespace weir::tests
