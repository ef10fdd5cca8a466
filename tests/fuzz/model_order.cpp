// Any bytes as the body of an order for models: an order or an error that says something, never a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "net/protocol/model_orders.h"

namespace {

template <class T>
void judge(const weir::core::result<T>& read) {
  if (!read && read.error().message.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::net;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto load = orders::parse_load(body);
  judge(load);
  if (load && load->name.empty()) std::abort();
  const auto change = orders::parse_change(body);
  judge(change);
  const auto swap = orders::parse_swap(body);
  judge(swap);
  if (swap && (swap->out.empty() || swap->in.name.empty())) std::abort();
  const auto named = orders::parse_named(body);
  judge(named);
  if (named && named->empty()) std::abort();
  return 0;
}
