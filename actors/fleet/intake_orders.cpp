// How a worker takes orders for its models: a permit first, then the order, which the program carries out.
#include <algorithm>
#include <boost/asio/post.hpp>

#include "actors/fleet/intake.h"
#include "core/insist.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;

namespace {

constexpr std::size_t most_permits = std::size_t{1} << 16;  // some 3 MiB
constexpr core::duration permit_lasts = std::chrono::seconds(5);

}  // namespace

// True: the message is about orders, files of models, or logprobs of prompts.
bool intake::take_order(const bus::message& m) {
  switch (wire::kind_of(m.bytes).value_or(wire::frame_kind::job)) {
    case wire::frame_kind::permit_wish:
      give_permit(m);
      return true;
    case wire::frame_kind::model_wish:
      carry_out(m);
      return true;
    case wire::frame_kind::file_wish:
      give_file(m);
      return true;
    case wire::frame_kind::score_wish:
      give_scores(m);
      return true;
    default:
      return false;
  }
}

// The oldest permit gives way: whoever asks without end makes permits short, and keeps nobody out.
void intake::give_permit(const bus::message& m) {
  if (m.answer_to.empty() || (!options_.on_order && !doors_.demand.on)) return void(++now_.broken);
  if (given_permits_.size() == most_permits) {
    permits_.erase(given_permits_.front());
    given_permits_.pop_front();
  }
  const auto number = random_();
  permits_[number] = time_.now();
  given_permits_.push_back(number);
  bus_.publish(m.answer_to, wire::frame_of(wire::permit{number}));
}

// An order without a permit, or with one that was used, is counted as broken.
bool intake::use_permit(std::uint64_t number) {
  const auto given = permits_.extract(number);
  return given && time_.now() - given.mapped() <= permit_lasts;
}

void intake::carry_out(const bus::message& m) {
  auto wish = wire::read_model_wish(m.bytes);
  if (!wish || !options_.on_order || !use_permit(wish->permit)) return void(++now_.broken);
  ++now_.orders;
  auto done = [weak = weak_from_this(), ex = ex_, to = m.answer_to](wire::wish_answer a) {
    core::insist([&] {
      boost::asio::post(ex, [weak, to, a] {
        const auto self = weak.lock();
        if (!self || self->ears_.empty()) return;
        self->publish_board();  // before the answer: who ordered sees what came of it
        if (!to.empty()) self->bus_.publish(to, wire::frame_of(a));
      });
    });
  };
  options_.on_order(std::move(*wish), std::move(done));
}

}  // namespace weir::actors::fleet
