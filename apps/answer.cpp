#include "apps/answer.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "net/protocol/logprobs.h"

#include "core/json_line.h"

namespace weir::apps {

namespace json = boost::json;

json::object answer_of(const core::error& e) {
  json::object error{{"message", e.message}};
  if (!e.param.empty()) error["param"] = e.param;
  return {{"error", std::move(error)}};
}

json::object answer_of(const actors::job_stream& stream) {
  if (stream.state() == actors::job_stream::phase::refused) return answer_of(stream.refusal());
  const auto& how = stream.ended();
  std::string text;
  stream.text_of(0, stream.published(), text);
  json::array ids;
  for (std::uint32_t i = 0; i < stream.published(); ++i) ids.push_back(stream.token_at(i));
  json::object out{{"text", text},
                   {"token_ids", std::move(ids)},
                   {"finish_reason", core::name(how.reason)},
                   {"usage",
                    {{"input_tokens", how.input_tokens},
                     {"output_tokens", how.output_tokens},
                     {"cached_tokens", how.cached_tokens}}},
                   {"timings",
                    {{"queue_ms", core::rounded_time(how.queue_ms)},
                     {"prefill_ms", core::rounded_time(how.prefill_ms)},
                     {"ttft_ms", core::rounded_time(how.ttft_ms)},
                     {"decode_ms", core::rounded_time(how.decode_ms)},
                     {"max_gap_ms", core::rounded_time(how.max_gap_ms)}}}};
  if (stream.log().has_logprobs() && stream.tokenizer()) {
    std::string list;
    net::append_weir_logprobs(list, {&stream.log(), stream.tokenizer().get(), 0, stream.published()});
    out["logprobs"] = json::parse(list);
  }
  if (how.fault) out["error"] = answer_of(*how.fault).at("error");
  return out;
}

}  // namespace weir::apps
