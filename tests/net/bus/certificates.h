// certificates.h — an authority and a certificate of its for localhost, made by the openssl program.
//
// Thread safety: one thread.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/nats_server.h"

namespace weir::tests {

class certificates {
 public:
  explicit certificates(const std::string& name = "localhost") {
    const std::string quiet = " 2>/dev/null";
    const std::string key = " -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    run("openssl req -x509" + key + " -days 2 -subj /CN=weir-test-authority -keyout ca.key -out ca.pem" +
        quiet);
    run("openssl req" + key + " -subj /CN=" + name + " -keyout own.key -out own.csr" + quiet);
    run("echo subjectAltName=DNS:" + name + " > names");
    run("openssl x509 -req -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out "
        "own.pem" +
        quiet);
  }
  std::string authority() const { return file("ca.pem"); }
  std::string certificate() const { return file("own.pem"); }
  std::string key() const { return file("own.key"); }
  std::string file(const char* name) const { return (scratch_.path() / name).string(); }

 private:
  void run(const std::string& line) const {
    CAPTURE(line);
    REQUIRE(std::system(("cd '" + scratch_.path().string() + "' && " + line).c_str()) == 0);
  }
  scratch_directory scratch_;
};

}  // namespace weir::tests
