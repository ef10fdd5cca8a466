// The harness over TLS: a certificate that is trusted, one that is not, one that nobody looks at.
#include "tests/net/load/tls_front.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "net/load/options.h"
#include "net/load/run.h"
#include "tests/net/load/scripted_server.h"

using namespace weir::load;
using weir::tests::scripted_server;
using weir::tests::self_signed;
using weir::tests::server_frame;
using weir::tests::tls_front;

namespace {

// Four tokens, then done.
std::string answer(const std::string& said, bool&) {
  if (said.find("response.create") == said.npos) return {};
  const auto at = said.find("\"id\":\"") + 6;
  const std::string id = said.substr(at, said.find('"', at) - at);
  std::string out;
  for (int i = 1; i <= 4; ++i) out += server_frame(fmt::format(R"({{"type":"response.delta","id":"{}","seq":{},"delta":"w","t":{}}})", id, i, i));
  return out + server_frame(fmt::format(R"({{"type":"response.done","id":"{}","seq":4,"status":"completed","usage":{{"output_tokens":4}}}})", id));
}

report run_at(const std::string& url, bool insecure) {
  typed_options o;
  o.url = url;
  o.streams = 4;
  o.duration = 0.4;
  o.insecure = insecure;
  const auto p = resolve(o);
  REQUIRE(p.has_value());
  const auto at = place::find(p->run.how.to, insecure);
  REQUIRE(at.has_value());
  return run(p->run, **at, {}, [] { return false; });
}

// Certificates that this process trusts while it lives: those of this file alone.
struct trusting {
  explicit trusting(const std::string& pem) {
    const int fd = mkstemp(name);
    REQUIRE(fd >= 0);
    close(fd);
    std::ofstream(name) << pem;
    setenv("SSL_CERT_FILE", name, 1);
  }
  ~trusting() {
    unsetenv("SSL_CERT_FILE");
    unlink(name);
  }
  char name[40] = "/tmp/weir_load_tls_XXXXXX";
};

}  // namespace

TEST_CASE("a run over TLS: with a trusted certificate, and with any where nobody looks, but not with a stranger's") {
  scripted_server s(answer);
  const self_signed known, stranger;
  const std::string plain = s.url("ws");
  const auto behind = static_cast<unsigned short>(std::stoi(plain.substr(plain.rfind(':') + 1)));
  const tls_front good(known, behind), bad(stranger, behind);
  const trusting only(known.certificate);

  for (const auto& [front, insecure] : {std::pair(&good, false), std::pair(&bad, true)}) {
    const auto r = run_at(front->url("wss"), insecure);
    CHECK(r.all.number(figure::completed) >= 4);
    CHECK(r.all.number(figure::output_tokens) >= 4 * r.all.number(figure::completed));
    CHECK(r.all.number(figure::errors) == 0);
    CHECK(r.all.number(figure::gaps) == 0);
  }
  const int before = s.connections;
  const auto refused = run_at(bad.url("wss"), false);
  CHECK(refused.all.number(figure::completed) == 0);
  CHECK(refused.all.number(figure::errors) > 0);
  REQUIRE_FALSE(refused.all.error_texts().empty());
  CHECK(refused.all.error_texts().begin()->first.find("certificate verify failed") != std::string::npos);
  CHECK(s.connections == before);  // nothing was said to it
}
