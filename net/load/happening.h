// happening.h — what a protocol's client side is given and what it reports: a question, what all questions
// of a run have in common, and the events of an answer.
//
// Thread safety: plain data; any thread.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/load/record.h"
#include "net/load/url.h"

namespace weir::load {

struct question {
  std::string id;  // [a-z0-9]
  std::string prompt;
  std::uint32_t max_tokens = 16;
};

// What all requests of a run have in common.
struct manner {
  target to;
  std::vector<target> also;  // servers that stand for the same, as gateways of a fleet: clients take turns
  std::string key, model;
  boost::json::object extra;  // added to every request; replaces fields of the same name
  // Of weir.v1 alone.
  bool outlives = false;     // a job goes on when its connection is lost
  std::string pace, on_lag;  // as the protocol names them; empty: not said
  std::uint32_t window = 0;  // most tokens that the server may send unacknowledged; 0: no window
};

struct happening {
  enum class kind { opened, created, resumed, tokens, done, refused, failed, closed };
  kind is = kind::opened;
  std::uint32_t n = 1;               // of tokens: their number
  std::optional<std::uint64_t> seq;  // of tokens and done
  std::optional<micros> sampled;     // of tokens: when the last one was sampled, on the server's clock
  std::string_view text;             // of tokens; valid until the next call
  std::string_view response_id;      // of created; valid until the next call
  std::uint64_t input_tokens = 0, output_tokens = 0;  // of done; 0: not reported
  bool cancelled = false;                             // of done
  bool expired = false;                               // of refused: the server no longer keeps the answer
  bool leaves = false;                                // of closed: the server ends, and says so
  std::string why;                                    // of refused, failed, closed
};

}  // namespace weir::load
