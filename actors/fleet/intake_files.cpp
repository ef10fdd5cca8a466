// How a worker gives the text files of its models to gateways, in pieces that they ask for.
#include <algorithm>

#include "actors/fleet/intake.h"
#include "actors/fleet/text_files.h"
#include "core/fleet/file_frame.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;

// Gateways find a model by the digest that the board has of it, so that a name says nothing here. Who is not
// answered, since the second has had its bytes, asks again.
void intake::give_file(const bus::message& m) {
  const auto wish = wire::read_file_wish(m.bytes);
  if (!wish || m.answer_to.empty()) return void(++now_.broken);
  wire::file_part out{wish->digest, wish->file, wish->at, false, {}};
  const auto longest = bus_.most_bytes();
  const auto room = std::min(wire::longest_file_part, longest - std::min(longest - 1, wire::file_part_head));
  if (!file_bytes_.take(time_.now(), room)) return;
  const auto all = doors_.list.models();
  for (const auto& model : *all) {
    if (!model->files || model->files->digest() != wish->digest) continue;
    auto bytes = model->files->read(wish->file, wish->at, room);
    out.there = bytes.has_value();
    if (!bytes) break;
    out.bytes = std::move(*bytes);
    ++now_.file_pieces;
    break;
  }
  bus_.publish(m.answer_to, wire::frame_of(out));
}

}  // namespace weir::actors::fleet
