// The pages of a decoder_model: where the keys and values of its layers lie, on the device and on the host.
#include "core/model/decoder_model.h"

#include <cassert>

namespace weir::core {

result<void> decoder_model::allocate_pages(std::uint32_t count) {
  if (auto ok = check_awake(); !ok) return ok;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(std::uint64_t{count}, info_.page_bytes, &bytes))
    return make_error(errc::does_not_fit, "{} pages of {} bytes are more than 64 bits can count", count,
                      info_.page_bytes);
  pages_ = {};  // first, so that old and new pages need not fit together
  pages_ = kernels::buffer(backend_, bytes);
  if (!pages_.data())
    return make_error(errc::does_not_fit, "no memory for keys and values: {} bytes, {} are free", bytes,
                      backend_->free_bytes(backend_->self));
  page_count_ = count;
  if (whole_) whole_->set_pages(pages_.data(), count);
  return {};
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
    parts.push_back({first, bytes, 2 * g.layers});
    first += bytes * 2 * g.layers;
  }
  if (whole)
    parts = {
        {0, whole->page_bytes() / (2 * s.layers.size()), static_cast<std::uint32_t>(2 * s.layers.size())}};
  return parts;
}

kernels::kv_pages decoder_model::pages_of(std::uint32_t layer) const noexcept {
  const kernels::attention_mixer& a = config_.shape.layers[layer].mixer;
  const page_part& part = parts_[a.group];
  std::byte* group = pages_.data() + page_count_ * part.first;
  std::byte* keys = group + std::uint64_t{a.place} * 2 * page_count_ * part.bytes;
  return {keys, keys + page_count_ * part.bytes, a.kv_heads, a.head_dim, page_tokens, kv_};
}

void decoder_model::copy_pages(std::span<const page_copy> copies) {
  for (const page_copy& c : copies)
    for (const page_part& p : parts_) copy(p, in_pool(p, c.to), in_pool(p, c.from));
}

// Returns where a part of a page lies: the address of its first piece, and the bytes from one piece to the
// next.
decoder_model::pieces decoder_model::in_pool(const page_part& p, page_id page) const noexcept {
  const auto number = static_cast<std::uint64_t>(page);
  return {pages_.data() + page_count_ * p.first + number * p.bytes, page_count_ * p.bytes};
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
  for (const page_part& p : parts_) copy(p, in_host(p, slot), in_pool(p, page));
  return device_state();
}

result<void> decoder_model::restore_page(page_id page, std::uint32_t slot) {
  if (rest_ != rest::awake) return check_awake();
  for (const page_part& p : parts_) copy(p, in_pool(p, page), in_host(p, slot));
  return device_state();
}

}  // namespace weir::core
