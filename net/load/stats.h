// stats.h — what a weir server says of itself at /v1/stats, beside what its clients see. Other servers have
// none.
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
  double sent_p99_ms = 0;           // sampled to sent
};

// Asks once, and waits two seconds at most. Nothing where the server has no such page. Blocks.
std::optional<server_stats> ask_stats(const target& of, const endpoints& at, boost::asio::ssl::context* tls,
                                      const std::string& key);

// Of the page's text; pure.
std::optional<server_stats> read_stats(std::string_view json);

}  // namespace weir::load
