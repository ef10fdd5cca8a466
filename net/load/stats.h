// stats.h — reads the statistics that a weir server has at /v1/stats. Other servers have none.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "net/load/line.h"
#include "net/load/url.h"

namespace weir::load {

struct server_stats {
  std::uint64_t jobs = 0;           // queued, prefilling, decoding, paused
  std::uint64_t rss_bytes = 0;
  std::uint64_t slow_closed = 0;    // sockets closed with 4440
  double sent_p99_ms = 0;           // time from sampled to sent, 99th percentile
};

// Asks the server and blocks for at most two seconds; nullopt if it has no such statistics.
std::optional<server_stats> ask_stats(const target& of, const endpoints& at, boost::asio::ssl::context* tls,
                                      const std::string& key);

// Parses the answer. A pure function.
std::optional<server_stats> read_stats(std::string_view json);

}  // namespace weir::load
