#include "core/text/chat/special_tokens.h"

#include "core/text/chat/template_files.h"
#include "core/text/json_field.h"

namespace weir::core {

result<boost::json::object> special_tokens_of(const std::string& dir) {
  try {
    return find_template_files(dir).tokens;
  } catch (const refusal& r) {
    return r.why;
  }
}

}  // namespace weir::core
