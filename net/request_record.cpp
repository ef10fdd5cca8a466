#include "net/request_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "actors/job_witness.h"
#include "core/insist.h"
#include "net/protocol/json.h"
#include "net/protocol/ws_protocol.h"

namespace weir::net {
namespace {

// A time in so many digits as tell something: 0.36ms, 12.1ms, 310ms, 12.5s.
std::string time_text(double ms) {
  if (ms >= 10'000) return fmt::format("{:.1f}s", ms / 1000);
  return fmt::format("{:.{}f}ms", ms, ms < 1 ? 2 : ms < 100 ? 1 : 0);
}

class recorder final : public actors::job_witness {
 public:
  recorder(std::shared_ptr<server_state> all, request_record begun)
      : all_(std::move(all)), record_(std::move(begun)) {}
  // The last job has ended.
  ~recorder() override {
    if (record_.choices == 0) return;
    core::contained(all_->seen, "the log of requests", [this] { all_->options.on_request(record_); });
  }

  void ended(const actors::ended_job& job) noexcept override {
    core::contained(all_->seen, "the log of requests", [&] { add(job); });
  }

 private:
  void add(const actors::ended_job& job) {
    request_record& r = record_;
    if (r.choices++ == 0) r.id = job.id.text();
    if (r.model.empty()) r.model = shortened(job.model);
    r.input_tokens += job.how.input_tokens;
    r.output_tokens += job.how.output_tokens;
    r.cached_tokens += job.how.cached_tokens;
    if (r.queue_ms == 0) r.queue_ms = job.how.queue_ms;
    if (r.first_ms == 0) r.first_ms = job.how.ttft_ms;
    r.total_ms = std::max(r.total_ms, std::chrono::duration<double, std::milli>(job.lasted).count());
    const core::error* fault = job.refusal;
    if (!fault && job.how.fault) fault = &*job.how.fault;
    if (fault) r.code = ws::code_of(fault->code);
    add_reason(job.refusal ? "refused" : core::name(job.how.reason));
  }
  void add_reason(std::string_view reason) {
    if (record_.reason.find(reason) != std::string::npos) return;
    if (!record_.reason.empty()) record_.reason += '+';
    record_.reason += reason;
  }

  const std::shared_ptr<server_state> all_;
  request_record record_;
};

}  // namespace

std::string as_text(const request_record& r) {
  std::string out = fmt::format("id={}", r.id);
  const auto add = [&out](std::string_view name, std::string_view value) {
    if (!value.empty()) out += fmt::format(" {}={}", name, value);
  };
  add("request_id", r.request_id);
  add("key", r.key);
  add("route", r.route);
  add("model", r.model);
  if (r.choices > 1) add("choices", std::to_string(r.choices));
  out += fmt::format(" in={} out={} cached={}", r.input_tokens, r.output_tokens, r.cached_tokens);
  if (r.queue_ms > 0) add("queue", time_text(r.queue_ms));
  if (r.first_ms > 0) add("first", time_text(r.first_ms));
  add("total", time_text(r.total_ms));
  add("reason", r.reason);
  add("code", r.code);
  return out;
}

std::string as_json_members(const request_record& r) {
  std::string out;
  const auto text = [&out](std::string_view name, std::string_view value) {
    if (!value.empty()) append_text(out, name, value);
  };
  const auto count = [&out](std::string_view name, std::uint64_t value) {
    append_key(out, name);
    append_number(out, value);
  };
  const auto time = [&out](std::string_view name, double ms) {
    append_key(out, name);
    append_number(out, ms);
  };
  text("id", r.id);
  text("request_id", r.request_id);
  text("key", r.key);
  text("route", r.route);
  text("model", r.model);
  count("choices", r.choices);
  count("input_tokens", r.input_tokens);
  count("output_tokens", r.output_tokens);
  count("cached_tokens", r.cached_tokens);
  if (r.queue_ms > 0) time("queue_ms", r.queue_ms);
  if (r.first_ms > 0) time("first_ms", r.first_ms);
  time("total_ms", r.total_ms);
  text("reason", r.reason);
  text("code", r.code);
  return out;
}

std::shared_ptr<actors::job_witness> begin_record(const std::shared_ptr<server_state>& all,
                                                  const bearer& from, std::string_view route,
                                                  const std::string& request_id) {
  if (!all->options.on_request) return nullptr;
  request_record r;
  r.request_id = request_id;
  r.route = route;
  if (from.key) {
    const std::string name = from.key->rights()->name;
    r.key = name.empty() ? std::string(unnamed_key) : name;
  }
  return std::make_shared<recorder>(all, std::move(r));
}

}  // namespace weir::net
