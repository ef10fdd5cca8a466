// The harness over TLS: a certificate that is trusted, one that is not, one that nobody looks at.
#include "tests/net/load/tls_front.h"

#include <cstdlib>

#include "tests/net/load/runs.h"
#include "tests/support/data.h"

namespace weir::tests::tls_test {

using namespace weir::load;

namespace {

// Certificates that this process trusts while it lives: those of this file alone.
struct trusting {
  explicit trusting(const std::string& pem) {
    const std::string file = dir / "certificates.pem";
    weir::tests::write_file(file, pem);
    setenv("SSL_CERT_FILE", file.c_str(), 1);
  }
  ~trusting() { unsetenv("SSL_CERT_FILE"); }
  weir::tests::temporary_dir dir;
};

report run_tls(const std::string& url, bool insecure) {
  auto o = closed(url, 4);
  o.insecure = insecure;
  return run_at(o);
}

}  // namespace

TEST_CASE(
    "a run over TLS: with a trusted certificate, and with any where nobody looks, but not with a "
    "stranger's") {
  scripted_server s([](const std::string& said, bool&) {
    return creates(said) ? answer(id_of(said), {1, 2, 3, 4}) : std::string();
  });
  const self_signed known, stranger;
  const std::string plain = s.url("ws");
  const auto behind = static_cast<unsigned short>(std::stoi(plain.substr(plain.rfind(':') + 1)));
  const tls_front good(known, behind), bad(stranger, behind);
  const trusting only(known.certificate);

  for (const auto& [front, insecure] : {std::pair(&good, false), std::pair(&bad, true)}) {
    const auto r = run_tls(front->url("wss"), insecure);
    CHECK(r.all.number(figure::completed) >= 4);
    CHECK(r.all.number(figure::output_tokens) >= 4 * r.all.number(figure::completed));
    CHECK(r.all.number(figure::errors) == 0);
    CHECK(r.all.number(figure::gaps) == 0);
  }
  const int before = s.connections;
  const auto refused = run_tls(bad.url("wss"), false);
  CHECK(refused.all.number(figure::completed) == 0);
  CHECK(refused.all.number(figure::errors) > 0);
  REQUIRE_FALSE(refused.all.error_texts().empty());
  CHECK(refused.all.error_texts().begin()->first.find("certificate verify failed") != std::string::npos);
  CHECK(s.connections == before);  // nothing was said to it
}

}  // namespace weir::tests::tls_test
