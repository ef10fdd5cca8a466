// join_config.h — the settings by which a process joins others as a fleet, in the table of core/config.h.
//
// Thread safety: plain data; any thread, once filled.
#pragma once

#include <string>

#include "core/config.h"

namespace weir::core {

struct join_settings {
  std::string join;
  std::string cell = "main";
  std::string join_ca, join_cert, join_key, join_nkey;
};

template <class V>
void visit_settings(join_settings& s, V&& v) {
  const auto fleet = in_group("Fleet", v);
  fleet({"join",
         "servers of NATS by which the processes of a fleet find each other, nats://HOST[:PORT] or "
         "tls://HOST[:PORT]; several with commas",
         "URL[,URL...]"},
        s.join);
  fleet({"cell", "name of the fleet among those that use the same servers", "NAME"}, s.cell);
  fleet({"join-ca",
         "certificates of those who may sign the servers' own, as PEM; required unless all servers are on "
         "this machine",
         "FILE"},
        s.join_ca);
  fleet({"join-cert", "this process's certificate, as PEM; with join-key", "FILE"}, s.join_cert);
  fleet({"join-key", "private key of join-cert, as PEM", "FILE"}, s.join_key);
  fleet({"join-nkey",
         "seed of the key by which the servers know this process, as `nk -gen user` writes it; required "
         "unless all servers are on this machine",
         "FILE"},
        s.join_nkey);
}

}  // namespace weir::core
