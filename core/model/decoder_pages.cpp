// The pages of a decoder_model: where the keys and values of its layers lie, on the device and on the host.
#include "core/model/decoder_model.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace weir::core {

result<void> decoder_model::allocate_pages(std::uint32_t count) {
  if (auto ok = check_awake(); !ok) return ok;
  std::uint64_t bytes = 0;
  const std::uint32_t most = std::max(count, std::exchange(reserved_pages_, 0));
  if (__builtin_mul_overflow(std::uint64_t{most}, info_.page_bytes, &bytes))
    return make_error(errc::does_not_fit, "{} pages of {} bytes are more than 64 bits can count", most,
                      info_.page_bytes);
  if (!pool_.allocate(count, most))
    return make_error(errc::does_not_fit, "no memory for keys and values: {} bytes, {} are free", bytes,
                      backend_->free_bytes(backend_->self));
  if (whole_) whole_->set_pages(pool_.data(), most, pool_.parts().front().stride);
  return {};
}

result<void> decoder_model::reserve_pages(std::uint32_t most) {
  if (!info_.pool.change(most)) return cannot_change(most);
  reserved_pages_ = most;
  return {};
}

std::int32_t decoder_model::page_step() const noexcept {
  return pool_.changes() ? static_cast<std::int32_t>(info_.pool.step) : 0;
}

result<void> decoder_model::set_pages(std::int32_t pages) {
  if (auto ok = check_awake(); !ok) return ok;
  if (!pool_.changes()) return cannot_change(pool_.most());
  if (pages < 1 || pages > most_pages())
    return make_error(errc::does_not_fit, "a pool of {} has 1 to {} pages, not {}", info_.architecture,
                      pool_.most(), pages);
  if (pool_.resize(static_cast<std::uint32_t>(pages))) return {};
  return make_error(errc::does_not_fit,
                    "no memory for {} pages of {} bytes in place of {}: {} bytes are free", pages,
                    info_.page_bytes, pool_.pages(), backend_->free_bytes(backend_->self));
}

result<void> decoder_model::cannot_change(std::uint32_t pages) const {
  if (info_.pool.step == 0)
    return make_error(errc::not_supported, "the pool of {} cannot change its size on {}", info_.architecture,
                      backend_->name);
  return make_error(errc::not_supported,
                    "a pool of {} pages of {} cannot change its size on {}: it needs {} at least, and a "
                    "multiple of {}",
                    pages, info_.architecture, backend_->name, 2 * info_.pool.step, info_.pool.even);
}

result<void> decoder_model::allocate_host_pages(std::uint32_t count) {
  const std::uint64_t bytes = count * info_.page_bytes;
  host_pages_ = {};
  host_pages_ = kernels::host_buffer(backend_, bytes);
  if (count > 0 && !host_pages_.data())
    return make_error(errc::does_not_fit, "no host memory for {} pages: {} bytes, which the device can reach",
                      count, bytes);
  return {};
}

// A whole decoder's pages have one group, as single operations store it.
std::vector<decoder_model::page_part> decoder_model::parts_of(const kernels::model_shape& s,
                                                              kernels::kv_type kv,
                                                              const kernels::decoder* whole) {
  std::vector<page_part> parts;
  std::uint64_t first = 0;
  for (const kernels::kv_layers& g : s.groups) {
    const std::uint64_t bytes =
        std::uint64_t{g.kv_heads} * page_tokens * kernels::kv_row_bytes(kv, g.head_dim);
    parts.push_back({.first = first, .bytes = bytes, .count = 2 * g.layers});
    first += bytes * 2 * g.layers;
  }
  if (whole) {
    const auto runs = static_cast<std::uint32_t>(2 * s.layers.size());
    parts = {{.bytes = whole->page_bytes() / runs, .count = runs}};
  }
  return parts;
}

kernels::kv_pages decoder_model::pages_of(std::uint32_t layer) const noexcept {
  const kernels::attention_mixer& a = config_.shape.layers[layer].mixer;
  const page_part& part = pool_.parts()[a.group];
  std::byte* keys = pool_.piece(part, 0) + std::uint64_t{a.place} * 2 * part.stride;
  return {keys, keys + part.stride, a.kv_heads, a.head_dim, page_tokens, kv_};
}

void decoder_model::copy_pages(std::span<const page_copy> copies) {
  for (const page_copy& c : copies)
    for (const page_part& p : pool_.parts()) copy(p, in_pool(p, c.to), in_pool(p, c.from));
}

result<void> decoder_model::move_pages(std::span<const page_copy> moves) {
  if (auto ok = check_awake(); !ok) return ok;
  if (auto ok = device_state(); !ok) return ok;
  copy_pages(moves);
  std::byte last{};  // to read it waits for what was begun
  backend_->do_download(backend_->self, &last, pool_.data(), 1);
  return device_state();
}

// Returns where a part of a page lies: the address of its first piece, and the bytes from one piece to the
// next.
decoder_model::pieces decoder_model::in_pool(const page_part& p, page_id page) const noexcept {
  return {pool_.piece(p, page), p.stride};
}

decoder_model::pieces decoder_model::in_host(const page_part& p, std::uint32_t slot) const noexcept {
  assert((slot + 1) * info_.page_bytes <= host_pages_.size());
  return {host_pages_.data() + slot * info_.page_bytes + p.first, p.bytes};
}

void decoder_model::copy(const page_part& p, const pieces& to, const pieces& from) {
  backend_->run(kernels::copy{to.first, to.stride, from.first, from.stride, p.bytes, p.count});
}

result<void> decoder_model::save_page(page_id page, std::uint32_t slot) {
  if (rest_ != rest::awake) return check_awake();
  for (const page_part& p : pool_.parts()) copy(p, in_host(p, slot), in_pool(p, page));
  return device_state();
}

result<void> decoder_model::restore_page(page_id page, std::uint32_t slot) {
  if (rest_ != rest::awake) return check_awake();
  for (const page_part& p : pool_.parts()) copy(p, in_pool(p, page), in_host(p, slot));
  return device_state();
}

}  // namespace weir::core
