// template_prober.h — renders short conversations with a chat template, to find out how it reads messages.
//
// Thread safety: const after construction; any thread. The template must outlive its prober.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "core/text/template/template.h"

namespace weir::core {

class template_prober {
 public:
  // `tokens`: spelling of the special tokens by their names.
  template_prober(const jinja::program& p, const boost::json::object& tokens);

  // The prompt, with the beginning of an answer; empty if the template fails or refuses. `tools`: there is
  // one, `weir`, with one parameter, `weirkey`. A probe costs no more than an eighth of what a request's
  // rendering may.
  std::string prompt_of(boost::json::array messages, bool tools) const;

 private:
  const jinja::program& program_;
  boost::json::object tokens_;
};

// The messages of a JSON text. REQUIRES: it is an array.
boost::json::array messages_of(std::string_view text);

}  // namespace weir::core
