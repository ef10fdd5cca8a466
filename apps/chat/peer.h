// peer.h — who answers: a model in this process, or a server.
//
// Thread safety: one thread. ask() returns when the answer has ended.
#pragma once

#include <boost/json/array.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/config.h"
#include "core/error.h"
#include "core/sample/params.h"

namespace weir::apps {

// What every request of a conversation has in common.
struct chat_manner {
  std::optional<std::int64_t> max_tokens;
  core::sampling_request sampling;
};

// How an answer ended.
struct answer_end {
  std::string error;      // for people; empty: none
  bool too_long = false;  // the error: the messages do not fit the model's context
  bool stopped = false;   // by Ctrl-C
  bool cut = false;       // the answer is as long as it may be, or the context is full
  std::uint64_t input_tokens = 0, output_tokens = 0, cached_tokens = 0;
  double first_ms = 0, whole_ms = 0;  // from the request to the first text, and to the end
};

class peer {
 public:
  // `thought`: the text is reasoning, and not the answer. `text` is not empty.
  using on_text = std::function<void(std::string_view text, bool thought)>;

  virtual ~peer() = default;
  virtual std::string name() = 0;  // for people
  // Asks for the answer to `messages` and calls `show` with its text as it comes. Ctrl-C ends the answer.
  virtual answer_end ask(const boost::json::array& messages, const on_text& show) = 0;
};

// A model in this process. Errors are printed, and `exit` is then the exit code.
std::unique_ptr<peer> open_local_peer(const core::engine_settings& s, chat_manner m, int& exit);

// A server. It is asked whether it speaks weir.v1; otherwise it has to speak OpenAI's chat completions.
// `model`: empty is the server's first. Error: a wrong URL, or nobody answers there.
core::result<std::unique_ptr<peer>> open_remote_peer(const std::string& url, std::string key,
                                                     std::string model, chat_manner m);

}  // namespace weir::apps
