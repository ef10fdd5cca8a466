// openai_talk.h — the client side of OpenAI's completions and chat completions over server-sent events.
// talk.h says what the members do.
//
// Thread safety: none; one owner.
#pragma once

#include <span>
#include <vector>

#include "net/load/happening.h"
#include "net/load/http_wire.h"

namespace weir::load {

class openai_talk {
 public:
  explicit openai_talk(const manner& m) : m_(&m) {}

  std::string hello() const { return {}; }
  std::string ask(const question& q);
  std::string resume(std::string_view, std::string_view, std::uint64_t) { return {}; }  // there is no resume
  std::string cancel() const { return {}; }                                             // nor a cancel
  std::span<char> room() {
    bytes_.resize(4096);
    return bytes_;
  }
  void took(std::size_t n) { reader_.feed({bytes_.data(), n}); }
  void feed(std::string_view bytes) { reader_.feed(bytes); }
  bool next(happening& h);
  bool ended(happening& h);
  std::string take_to_send() { return {}; }
  bool reusable() const { return keeps_alive_; }

 private:
  bool understand(std::string_view data, happening& h);
  bool conclude(happening& h);

  const manner* m_;
  http_reader reader_;
  sse_reader events_;
  std::string body_, text_, why_;
  int status_ = 0;
  bool keeps_alive_ = true, open_ = false, finished_ = false;
  std::uint64_t input_tokens_ = 0, output_tokens_ = 0;
  std::vector<char> bytes_;
};

}  // namespace weir::load
