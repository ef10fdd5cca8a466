#include "core/fleet/order_frame.h"

#include "core/fleet/bytes.h"
#include "core/fleet/frame_kind.h"

namespace weir::core::fleet {
namespace {

// What one frame has, for both directions.
template <class IO>
void order_fields(IO&, const permit_wish&) {}

template <class IO, class T>
requires std::is_same_v<std::remove_const_t<T>, permit>
void order_fields(IO& io, T& f) {
  std::uint64_t number = f.number;
  io(number);
  if constexpr (!IO::writes) f.number = number;
}

template <class IO, class T>
requires std::is_same_v<std::remove_const_t<T>, model_wish>
void order_fields(IO& io, T& f) {
  io(f.permit);
  io.one_of(f.verb, model_verb::plan);
  io(f.any_path);
  io(f.name);
  io(f.body);
  if constexpr (!IO::writes)
    if (f.name.size() > longest_wish_name || f.body.size() > longest_wish) io.fail();
}

template <class IO, class T>
requires std::is_same_v<std::remove_const_t<T>, wish_answer>
void order_fields(IO& io, T& f) {
  io(f.status);
  io.list(f.headers, most_answer_headers, [&](auto& h) {
    io(h.first);
    io(h.second);
  });
  io(f.body);
  if constexpr (!IO::writes)
    if (f.status < 100 || f.status > 599 || f.body.size() > longest_answer) io.fail();
}

template <class T>
std::string order_frame_of(frame_kind k, const T& f) {
  std::string out = begin_frame(k);
  byte_writer to(out);
  order_fields(to, f);
  return out;
}

template <class T>
std::optional<T> read_order_frame(frame_kind k, std::string_view frame) {
  if (kind_of(frame) != k) return std::nullopt;
  byte_reader from(body_of(frame));
  T f;
  order_fields(from, f);
  return from.failed() ? std::nullopt : std::optional(std::move(f));
}

}  // namespace

std::string frame_of(const permit_wish& f) { return order_frame_of(frame_kind::permit_wish, f); }
std::string frame_of(const permit& f) { return order_frame_of(frame_kind::permit, f); }
std::string frame_of(const model_wish& f) { return order_frame_of(frame_kind::model_wish, f); }
std::string frame_of(const wish_answer& f) { return order_frame_of(frame_kind::wish_answer, f); }

std::optional<permit_wish> read_permit_wish(std::string_view frame) {
  return read_order_frame<permit_wish>(frame_kind::permit_wish, frame);
}
std::optional<permit> read_permit(std::string_view frame) {
  return read_order_frame<permit>(frame_kind::permit, frame);
}
std::optional<model_wish> read_model_wish(std::string_view frame) {
  return read_order_frame<model_wish>(frame_kind::model_wish, frame);
}
std::optional<wish_answer> read_wish_answer(std::string_view frame) {
  return read_order_frame<wish_answer>(frame_kind::wish_answer, frame);
}

}  // namespace weir::core::fleet
