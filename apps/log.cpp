#include "apps/log.h"

#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "core/visible.h"
#include "net/protocol/json.h"

namespace weir::apps {
namespace {

constexpr std::size_t most_waiting_lines = 1024;

log_format format_now = log_format::text;

// %* of the patterns below: what a line says.
class what_it_says final : public spdlog::custom_flag_formatter {
 public:
  explicit what_it_says(log_format f) : format_(f) {}

  void format(const spdlog::details::log_msg& m, const std::tm&, spdlog::memory_buf_t& to) override {
    const std::string_view said(m.payload.data(), m.payload.size());
    const std::string out = format_ == log_format::json ? members_of(m, said) : core::one_line(said);
    to.append(out.data(), out.data() + out.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return spdlog::details::make_unique<what_it_says>(format_);
  }

 private:
  static std::string members_of(const spdlog::details::log_msg& m, std::string_view said) {
    if (std::string_view(m.logger_name.data(), m.logger_name.size()) == request_log::name)
      return std::string(said);  // members already
    std::string out;
    net::append_text(out, "message", core::one_line(said));
    return out;
  }

  const log_format format_;
};

}  // namespace

std::unique_ptr<spdlog::formatter> formatter_of(log_format f) {
  auto out = std::make_unique<spdlog::pattern_formatter>();
  out->add_flag<what_it_says>('*', f);
  out->set_pattern(f == log_format::json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%*})"
                                         : "%Y-%m-%d %H:%M:%S.%e %^%l%$ %*");
  return out;
}

void set_up_log() {
  spdlog::set_default_logger(spdlog::stderr_color_mt("weir"));
  set_log_format(log_format::text);
}

void set_log_format(log_format f) {
  format_now = f;
  spdlog::set_formatter(formatter_of(f));
}

log_format current_log_format() noexcept { return format_now; }

request_log::request_log() : thread_(std::make_shared<spdlog::details::thread_pool>(most_waiting_lines, 1)) {
  const auto& where = spdlog::default_logger_raw()->sinks();
  logger_ = std::make_shared<spdlog::async_logger>(name, where.begin(), where.end(), thread_,
                                                   spdlog::async_overflow_policy::overrun_oldest);
}

request_log::~request_log() = default;

void request_log::write(const net::request_record& r) {
  if (!spdlog::default_logger_raw()->should_log(spdlog::level::info)) return;
  if (format_now == log_format::json) {
    logger_->info("\"event\":\"request\",{}", net::as_json_members(r));
  } else {
    logger_->info("request {}", net::as_text(r));
  }
}

}  // namespace weir::apps
