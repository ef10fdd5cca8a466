#include "core/model/weight_samples.h"

#include <algorithm>
#include <cstring>

#include "kernels/random_weights.h"

namespace weir::core {
namespace {

using u64 = std::uint64_t;

// Each word changes the digest, since mix_bits() maps no two numbers to one.
u64 digest_of(const std::byte* at, u64 bytes) {
  u64 out = bytes;
  for (u64 i = 0; i < bytes; i += sizeof(u64)) {
    u64 word = 0;
    std::memcpy(&word, at + i, sizeof word);
    out = kernels::mix_bits(out ^ word);
  }
  return out;
}

}  // namespace

sample_places places_of(const weight_area& a, u64 seed) noexcept {
  constexpr u64 unit = 16;  // bytes that a device copies at once
  const u64 fit = a.bytes / sample_bytes, wanted = u64{samples_of_a_tensor} * a.tensors;
  const u64 count = std::max<u64>(1, std::min({fit, wanted, u64{most_places}}));
  const u64 stride = a.bytes / count / sample_bytes * sample_bytes;
  const u64 shifts = (stride - sample_bytes) / unit + 1;
  return {a.first + kernels::mix_bits(seed ^ a.first) % shifts * unit, stride,
          static_cast<std::uint32_t>(count)};
}

weight_samples::weight_samples(const backend_ptr& on, std::span<const weight_area> areas) : areas_(areas) {
  u64 places = 0;
  for (const weight_area& a : areas) places += places_of(a, 0).count;
  taken_ = kernels::host_buffer(on, places * sample_bytes);
}

void weight_samples::take(const kernels::backend& on, const kernels::buffer& weights, u64 seed) {
  seed_ = seed;
  digests_ = digests(on, weights);
}

std::optional<weight_area> weight_samples::compare(const kernels::backend& on,
                                                   const kernels::buffer& weights) {
  const auto now = digests(on, weights);
  const auto differs = std::ranges::mismatch(now, digests_).in1 - now.begin();
  if (static_cast<std::size_t>(differs) == areas_.size()) return std::nullopt;
  return areas_[static_cast<std::size_t>(differs)];
}

std::vector<u64> weight_samples::digests(const kernels::backend& on, const kernels::buffer& weights) const {
  std::vector<u64> out;
  if (areas_.empty()) return out;
  std::byte* to = taken_.data();
  for (const weight_area& a : areas_) {
    const sample_places p = places_of(a, seed_);
    on.run(kernels::copy{to, sample_bytes, weights.data() + p.first, p.stride, sample_bytes, p.count});
    to += p.count * sample_bytes;
  }
  std::byte last{};  // a download waits for what was begun before it
  on.do_download(on.self, &last, weights.data(), sizeof last);
  const std::byte* from = taken_.data();
  for (const weight_area& a : areas_) {
    const u64 bytes = places_of(a, seed_).count * sample_bytes;
    out.push_back(digest_of(from, bytes));
    from += bytes;
  }
  return out;
}

}  // namespace weir::core
