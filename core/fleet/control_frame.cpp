#include "core/fleet/control_frame.h"

#include <algorithm>
#include <utility>

namespace weir::core::fleet {
namespace {

// What one frame has, for both directions. `T`: the frame, const where it is written.
template <class IO, class T>
void name_fields(IO& io, T& n) {
  io(n.id);
  io(n.attempt);
}

template <class IO, class List>
void names_fields(IO& io, List& all) {
  io.list(all, most_named, [&](auto& n) { name_fields(io, n); });
}

void error_field(byte_writer& io, const error& e) { write_error(io, e); }
void error_field(byte_reader& io, error& e) { read_error(io, e); }

// A worker or a gateway: a name, or the frame is broken.
template <class IO, class T>
void member_field(IO& io, T& name) {
  io(name);
  if constexpr (!IO::writes)
    if (!is_name(name)) io.fail();
}

template <class IO, class T>
void found_fields(IO& io, T& f) {
  io(f.question);
  member_field(io, f.worker);
  io(f.model);
  io(f.engine);
  io(f.since);
  io(f.tokens);
  io(f.ended);
  io(f.part);
  io(f.of);
  if constexpr (IO::writes) {
    io.text(f.bytes);
  } else {
    if (f.of > most_found_parts || f.part >= f.of) return io.fail();
    io(f.bytes);
  }
}

template <class IO, class T>
void fields(IO& io, T& f) {
  using frame = std::remove_const_t<T>;
  if constexpr (requires { f.job; }) name_fields(io, f.job);
  if constexpr (std::is_same_v<frame, taken>) {
    io(f.ahead);
    io(f.arithmetic);
  } else if constexpr (std::is_same_v<frame, refused>) {
    error_field(io, f.why);
  } else if constexpr (std::is_same_v<frame, gone>) {
    member_field(io, f.worker);
    names_fields(io, f.jobs);
  } else if constexpr (std::is_same_v<frame, found>) {
    found_fields(io, f);
  } else if constexpr (std::is_same_v<frame, adopted>) {
    member_field(io, f.worker);
    names_fields(io, f.jobs);
  } else if constexpr (std::is_same_v<frame, cancel>) {
    io.one_of(f.why, finish_reason::error);
  } else if constexpr (std::is_same_v<frame, pause>) {
    io(f.longest);
  } else if constexpr (std::is_same_v<frame, again>) {
    member_field(io, f.gateway);
    io.list(f.jobs, most_named, [&](auto& p) {
      name_fields(io, p.job);
      io(p.after);
    });
  } else if constexpr (std::is_same_v<frame, find>) {
    io(f.id);
    io(f.key);
    io(f.question);
    member_field(io, f.gateway);
  } else if constexpr (std::is_same_v<frame, adopt>) {
    io(f.key);
    member_field(io, f.gateway);
    io(f.slot);
    io(f.after);
  } else if constexpr (std::is_same_v<frame, drop>) {
    names_fields(io, f.jobs);
  } else if constexpr (std::is_same_v<frame, pulse>) {
    member_field(io, f.gateway);
    io(f.jobs);
  } else if constexpr (std::is_same_v<frame, load_wish>) {
    io(f.number);
    member_field(io, f.gateway);
    io(f.model);
    io(f.over);
    if constexpr (!IO::writes)
      if (f.model.empty() || f.model.size() > longest_wish_name) io.fail();
  } else if constexpr (std::is_same_v<frame, load_news>) {
    io(f.number);
    io.one_of(f.now, load_stand::unknown);
    error_field(io, f.why);
  } else if constexpr (std::is_same_v<frame, drain>) {
    io(f.limit);
  }
}

template <std::size_t... I>
std::optional<control> read_as(frame_kind k, byte_reader& from, std::index_sequence<I...>) {
  std::optional<control> out;
  const auto attempt = [&]<class T>(std::type_identity<T>) {
    if (out || T::kind != k) return;
    T frame;
    fields(from, frame);
    if (!from.failed()) out.emplace(std::move(frame));
  };
  (attempt(std::type_identity<std::variant_alternative_t<I, control>>()), ...);
  return out;
}

}  // namespace

void write_error(byte_writer& to, const error& e) {
  to.one_of(e.code, errc::internal);
  to.text(std::string_view(e.message).substr(0, longest_message));
  to.text(std::string_view(e.param).substr(0, longest_message));
  to(e.retry_after_ms);
}

void read_error(byte_reader& from, error& e) {
  from.one_of(e.code, errc::internal);
  e.message = from.text().substr(0, longest_message);
  e.param = from.text().substr(0, longest_message);
  from(e.retry_after_ms);
}

std::string frame_of(const control& c) {
  return std::visit(
      [](const auto& f) {
        std::string out = begin_frame(std::remove_cvref_t<decltype(f)>::kind);
        byte_writer to(out);
        fields(to, f);
        return out;
      },
      c);
}

std::vector<std::string> found_frames(const found& head, std::string_view job, std::size_t longest) {
  found f = head;
  f.bytes.clear();
  constexpr std::size_t lengths = 16;  // of the varints that depend on the parts
  const std::size_t taken = frame_of(f).size() + lengths;
  const std::size_t each = longest - std::min(longest - 1, taken);
  const std::size_t parts = std::max<std::size_t>(1, (job.size() + each - 1) / each);
  std::vector<std::string> out;
  if (parts > most_found_parts) return out;
  f.of = static_cast<std::uint32_t>(parts);
  for (; f.part < f.of; ++f.part) {
    f.bytes = job.substr(f.part * each, each);
    out.push_back(frame_of(f));
  }
  return out;
}

std::optional<control> read_control(std::string_view frame) {
  const auto k = kind_of(frame);
  if (!k) return std::nullopt;
  byte_reader from(body_of(frame));
  return read_as(*k, from, std::make_index_sequence<std::variant_size_v<control>>());
}

}  // namespace weir::core::fleet
