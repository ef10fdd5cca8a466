// log.h — the program's log on stderr: a line an event, as text or as JSON.
//
// What a client or a file has written reaches no line raw: control characters are escaped.
//
// Thread safety: any thread; set_up_log() and set_log_format() before other threads log.
#pragma once

#include <spdlog/formatter.h>

#include <memory>

#include "net/request_record.h"

namespace spdlog {
class logger;
namespace details {
class thread_pool;
}
}  // namespace spdlog

namespace weir::apps {

enum class log_format { text, json };

// Makes stderr the place of the log, in the text format.
void set_up_log();
void set_log_format(log_format f);
log_format current_log_format() noexcept;

// Text: `2026-01-31 12:00:00.000 info MESSAGE`. JSON: {"time","level","message"}; a line of request_log has
// the members of its record in place of `message`.
std::unique_ptr<spdlog::formatter> formatter_of(log_format f);

// Writes the records of requests on a thread of its own, so that a slow reader of the log keeps no shard
// waiting. Of more than 1,024 lines that wait the oldest are dropped. The destructor writes what waits.
class request_log {
 public:
  static constexpr const char* name = "request";

  request_log();
  ~request_log();
  void write(const net::request_record& r);

 private:
  std::shared_ptr<spdlog::details::thread_pool> thread_;
  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace weir::apps
