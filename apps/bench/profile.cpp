#include "apps/bench/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "apps/bench/bench.h"

namespace weir::apps::bench {
namespace {

using kernels::backend;

// A function of the table that calls the same function of the other backend. `timed` is for operations, and
// also counts the time of the call; `through` is for all others.
template <auto entry>
struct through;
template <class R, class... A, R (*backend::*entry)(void*, A...)>
struct through<entry> {
  static R call(void* self, A... a) {
    const backend& inner = static_cast<profile*>(self)->inner();
    return (inner.*entry)(inner.self, a...);
  }
};

template <auto entry>
struct timed;
template <class Op, void (*backend::*entry)(void*, const Op&)>
struct timed<entry> {
  static void call(void* self, const Op& op) {
    auto& p = *static_cast<profile*>(self);
    const double took = seconds_of([&] { (p.inner().*entry)(p.inner().self, op); });
    const kernels::matrix* by = nullptr;
    if constexpr (std::is_same_v<Op, kernels::linear>) by = &op.w;
    if constexpr (std::is_same_v<Op, kernels::expert_linear>) {
      p.add(name(op), &op.w.first, took, traffic_of(op, experts_of(op)));
    } else {
      p.add(name(op), by, took, traffic_of(op));
    }
  }

  // How many experts some slot has. Profiles are of backends on the host, where ids can be read.
  static std::uint32_t experts_of(const kernels::expert_linear& op) {
    std::vector<bool> seen(op.w.count);
    for (std::uint32_t i = 0; i < op.slots; ++i) seen[static_cast<std::size_t>(op.ids[i])] = true;
    return static_cast<std::uint32_t>(std::ranges::count(seen, true));
  }

  static const char* name(const kernels::gather&) { return "gather"; }
  static const char* name(const kernels::row_norm&) { return "row_norm"; }
  static const char* name(const kernels::head_norm&) { return "head_norm"; }
  static const char* name(const kernels::linear&) { return "linear"; }
  static const char* name(const kernels::rotary_angles&) { return "rotary_angles"; }
  static const char* name(const kernels::rotary&) { return "rotary"; }
  static const char* name(const kernels::kv_write&) { return "kv_write"; }
  static const char* name(const kernels::attention&) { return "attention"; }
  static const char* name(const kernels::activate&) { return "activate"; }
  static const char* name(const kernels::sigmoid_mul&) { return "sigmoid_mul"; }
  static const char* name(const kernels::route&) { return "route"; }
  static const char* name(const kernels::expert_linear&) { return "expert_linear"; }
  static const char* name(const kernels::mix_experts&) { return "mix_experts"; }
  static const char* name(const kernels::add&) { return "add"; }
  static const char* name(const kernels::soft_cap&) { return "soft_cap"; }
};

}  // namespace

profile::profile(std::shared_ptr<const backend> of)
    : of_(std::move(of)),
      table_{
          .name = of_->name,
          .self = this,
          .begin_step = through<&backend::begin_step>::call,
          .end_step = through<&backend::end_step>::call,
          .do_gather = timed<&backend::do_gather>::call,
          .do_row_norm = timed<&backend::do_row_norm>::call,
          .do_head_norm = timed<&backend::do_head_norm>::call,
          .do_linear = timed<&backend::do_linear>::call,
          .do_rotary_angles = timed<&backend::do_rotary_angles>::call,
          .do_rotary = timed<&backend::do_rotary>::call,
          .do_kv_write = timed<&backend::do_kv_write>::call,
          .do_attention = timed<&backend::do_attention>::call,
          .do_activate = timed<&backend::do_activate>::call,
          .do_sigmoid_mul = timed<&backend::do_sigmoid_mul>::call,
          .do_route = of_->do_route ? timed<&backend::do_route>::call : nullptr,
          .do_expert_linear = of_->do_expert_linear ? timed<&backend::do_expert_linear>::call : nullptr,
          .do_mix_experts = of_->do_mix_experts ? timed<&backend::do_mix_experts>::call : nullptr,
          .do_add = timed<&backend::do_add>::call,
          .do_soft_cap = timed<&backend::do_soft_cap>::call,
          .on_host = of_->on_host,
          .do_allocate = through<&backend::do_allocate>::call,
          .do_free = through<&backend::do_free>::call,
          .do_reserve = of_->do_reserve ? through<&backend::do_reserve>::call : nullptr,
          .pieces = of_->pieces,
          .do_give_back = of_->do_give_back ? through<&backend::do_give_back>::call : nullptr,
          .do_take_again = of_->do_take_again ? through<&backend::do_take_again>::call : nullptr,
          .do_upload = through<&backend::do_upload>::call,
          .do_download = through<&backend::do_download>::call,
          .do_copy = through<&backend::do_copy>::call,
          .fault = of_->fault ? through<&backend::fault>::call : nullptr,
          .free_bytes = through<&backend::free_bytes>::call,
          .memory = of_->memory ? through<&backend::memory>::call : nullptr,
          .own_bytes = of_->own_bytes,
          .do_give_way = nullptr,  // nobody else has work on the device
          .do_allocate_host = of_->do_allocate_host ? through<&backend::do_allocate_host>::call : nullptr,
          .do_free_host = of_->do_free_host ? through<&backend::do_free_host>::call : nullptr,
          .do_begin_upload = of_->do_begin_upload ? through<&backend::do_begin_upload>::call : nullptr,
          .do_await_upload = of_->do_await_upload ? through<&backend::do_await_upload>::call : nullptr,
          .weight_bytes = through<&backend::weight_bytes>::call,
          .do_pack = through<&backend::do_pack>::call,
          .takes_blocks = of_->takes_blocks ? through<&backend::takes_blocks>::call : nullptr,
          .do_begin_pack = of_->do_begin_pack ? through<&backend::do_begin_pack>::call : nullptr,
          .stores_kv = of_->stores_kv ? through<&backend::stores_kv>::call : nullptr,
          .do_fill_random = of_->do_fill_random ? through<&backend::do_fill_random>::call : nullptr,
          .decoder_stores_kv = nullptr,
          .make_decoder = nullptr,  // a decoder is one operation, which hides the single ones
          .decoder_page_bytes = nullptr,
          .decoder_needs_of = nullptr,
          .do_read = through<&backend::do_read>::call,
          .peak_flops = through<&backend::peak_flops>::call,
      } {
  static_assert(
      sizeof(backend) == sizeof(std::string_view) + 48 * sizeof(void*) + sizeof(kernels::memory_pieces),
      "a new entry goes through here too");
}

std::shared_ptr<const backend> profile::table() const { return {of_, &table_}; }

void profile::add(const char* operation, const kernels::matrix* by, double seconds,
                  const kernels::traffic& t) {
  const std::uint32_t rows = by ? by->rows : 0, cols = by ? by->cols : 0;
  auto at = std::ranges::find_if(
      lines_, [&](const line& l) { return l.operation == operation && l.rows == rows && l.cols == cols; });
  if (at == lines_.end()) at = lines_.insert(at, line{operation, rows, cols});
  ++at->calls;
  at->bytes += t.bytes;
  at->seconds += seconds;
}

boost::json::array profile::figures() const {
  auto lines = lines_;
  std::ranges::sort(lines, [](const line& a, const line& b) { return a.seconds > b.seconds; });
  double all = 0;
  for (const auto& l : lines) all += l.seconds;
  boost::json::array out;
  for (const auto& l : lines)
    out.push_back(
        {{"operation", l.rows ? fmt::format("{} [{}, {}]", l.operation, l.rows, l.cols) : l.operation},
         {"calls", l.calls},
         {"us", l.seconds * 1e6},
         {"share", l.seconds / all},
         {"gb_per_s", static_cast<double>(l.bytes) / l.seconds * 1e-9}});
  return out;
}

}  // namespace weir::apps::bench
