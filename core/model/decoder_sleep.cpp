// The sleep of a decoder_model. On a device it gives back weights and pages; their addresses stay, and so do
// workspaces and graphs. On the host weights stay where they are, as a copy would take what it frees, and
// pages are given back.
#include "core/model/decoder_model.h"

namespace weir::core {
namespace {

// The backend gives way to others as long as this lives.
class way_given {
 public:
  way_given(const kernels::backend& on, const std::atomic<bool>* others_busy) : on_(on) {
    if (on_.do_give_way) on_.do_give_way(on_.self, others_busy);
  }
  ~way_given() {
    if (on_.do_give_way) on_.do_give_way(on_.self, nullptr);
  }
  way_given(const way_given&) = delete;
  way_given& operator=(const way_given&) = delete;

 private:
  const kernels::backend& on_;
};

}  // namespace

bool decoder_model::can_sleep() const noexcept { return backend_->do_give_back && backend_->do_take_again; }

std::optional<std::uint64_t> decoder_model::sleep_bytes() const noexcept {
  if (!can_sleep()) return std::nullopt;
  return backend_->on_host ? 0 : sleeping_weights::bytes_of(weights_);
}

result<void> decoder_model::sleep(const std::atomic<bool>* others_busy) {
  if (!can_sleep())
    return make_error(errc::not_supported,
                      "{} cannot sleep on {}: the device has no virtual memory management",
                      info_.architecture, backend_->name);
  if (rest_ == rest::asleep) return {};
  if (auto ok = check_awake(); !ok) return ok;
  if (auto ok = device_state(); !ok) return ok;
  const way_given way(*backend_, others_busy);
  if (!backend_->on_host) {
    if (auto ok = sleeping_.save(backend_, weights_); !ok) return ok;
    give_back(weights_.memory);
  }
  pool_.give_back();
  rest_ = rest::asleep;
  return device_state();
}

result<void> decoder_model::wake(const std::atomic<bool>* others_busy) {
  if (!can_sleep()) return model::wake(others_busy);
  if (rest_ == rest::awake) return {};
  if (rest_ == rest::spoiled) return check_awake();
  const way_given way(*backend_, others_busy);
  const bool weights_too = !backend_->on_host;
  if (weights_too && !take_again(weights_.memory)) return no_room_to_wake(weights_.memory.size());
  if (!pool_.take_again()) {
    if (weights_too) give_back(weights_.memory);
    return no_room_to_wake(pool_.bytes());
  }
  rest_ = rest::spoiled;  // until the weights are found to be sound
  if (weights_too)
    if (auto ok = sleeping_.restore(*backend_, weights_); !ok) return ok;
  if (auto ok = device_state(); !ok) return ok;
  rest_ = rest::awake;
  return {};
}

void decoder_model::give_back(const kernels::buffer& b) const {
  if (b.data()) backend_->do_give_back(backend_->self, b.data(), b.size());
}

bool decoder_model::take_again(const kernels::buffer& b) const {
  return !b.data() || backend_->do_take_again(backend_->self, b.data(), b.size());
}

result<void> decoder_model::no_room_to_wake(std::uint64_t bytes) const {
  if (auto ok = device_state(); !ok) return ok;
  return make_error(errc::does_not_fit, "no memory for {} to wake: {} bytes, {} are free", info_.architecture,
                    bytes, backend_->free_bytes(backend_->self));
}

result<void> decoder_model::check_awake() const {
  if (rest_ == rest::awake) return {};
  return make_error(errc::internal, "{} {}", info_.architecture,
                    rest_ == rest::asleep ? "sleeps" : "did not wake with the weights that it had");
}

}  // namespace weir::core
