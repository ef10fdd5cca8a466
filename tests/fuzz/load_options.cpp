// What the load harness is told on the command line: taken, or refused by a message that names the option.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "net/load/arrivals.h"
#include "net/load/conditions.h"
#include "net/load/range.h"
#include "net/load/url.h"

namespace {

template <class T>
bool taken(const weir::core::result<T>& r) {
  if (!r && (r.error().message.empty() || r.error().param.empty())) std::abort();
  return r.has_value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace load = weir::load;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  if (const auto c = load::parse_condition(text);
      taken(c) && (c->measure.empty() || !std::isfinite(c->limit)))
    std::abort();
  if (const auto o = load::parse_slo(text); taken(o) && !(o->ttft > 0 && o->tpot > 0 && o->e2el > 0))
    std::abort();
  if (const auto r = load::parse_range("n", text); taken(r) && (r->low < 1 || r->low > r->high)) std::abort();
  if (const auto u = load::parse_url("url", text); taken(u) && (u->host.empty() || !u->path.starts_with('/')))
    std::abort();
  taken(load::parse_arrivals(text));
  return 0;
}
