// http_talk.h — asks a server over HTTP, one question at a time, and waits for each answer.
//
// Thread safety: one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"
#include "net/load/run.h"
#include "net/load/url.h"

namespace weir::apps {

class http_talk {
 public:
  // `url`: of the server, with or without a path. `key`: API key; empty: none. Error: invalid_param, `url`.
  static core::result<http_talk> to(const std::string& url, std::string key);

  struct said {
    int status = 0;    // 0: there was no whole answer, and `body` says why
    std::string body;  // at most 4 MiB
  };
  static constexpr std::chrono::seconds usual_patience{15};

  // A GET, or a POST where there is a body. The server may be silent for `usual_patience`; with `goes_on` it
  // may be silent for as long as that returns true, which is asked twice a second.
  said ask(std::string_view path, std::string_view body = {}, const std::function<bool()>& goes_on = {});

  std::string authority() const { return to_.authority(); }

 private:
  http_talk(load::target to, std::shared_ptr<load::place> at, std::string key)
      : to_(std::move(to)), at_(std::move(at)), key_(std::move(key)) {}

  load::target to_;  // its path is what stands before the paths of questions
  std::shared_ptr<load::place> at_;
  std::string key_;
};

}  // namespace weir::apps
