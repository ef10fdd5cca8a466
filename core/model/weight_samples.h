// weight_samples.h — a few bytes of every tensor, by which weights that were copied away and back are
// checked.
//
// An area of weights that stacks n tensors has 16 n places of 64 bytes at equal distances, as far as it is
// long enough. The seed moves all places of an area by some bytes, so that each sleep looks elsewhere.
//
// Thread safety: sample_places() from any thread; a weight_samples has one owner, who owns the backend too.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/model/weights.h"
#include "kernels/host_buffer.h"

namespace weir::core {

constexpr std::uint64_t sample_bytes = 64;         // of a place
constexpr std::uint32_t samples_of_a_tensor = 16;  // places
constexpr std::uint32_t most_places = 65'535;      // of an area: what one copy of pieces takes

// The places of one area: place i is the 64 bytes from `first` + i * `stride` on, counted from the beginning
// of all weights. All of them are in the area.
struct sample_places {
  std::uint64_t first = 0, stride = 0;
  std::uint32_t count = 0;
};
// REQUIRES: the area has at least 64 bytes
sample_places places_of(const weight_area& area, std::uint64_t seed) noexcept;

class weight_samples {
 public:
  weight_samples() = default;
  // Allocates host memory for the samples of these areas, which must outlive this. Where memory is short,
  // ready() is false.
  weight_samples(const backend_ptr& on, std::span<const weight_area> areas);

  bool ready() const noexcept { return areas_.empty() || taken_.data() != nullptr; }
  std::uint64_t bytes() const noexcept { return taken_.size(); }  // of host memory

  // Reads the samples of `weights`, and keeps a digest of each area. Waits for the device.
  void take(const kernels::backend& on, const kernels::buffer& weights, std::uint64_t seed);
  // Reads the same bytes again. Returns the first area whose digest differs; nullopt: all are as they were.
  // After a fault of the device the answer means nothing.
  std::optional<weight_area> compare(const kernels::backend& on, const kernels::buffer& weights);

 private:
  std::vector<std::uint64_t> digests(const kernels::backend& on, const kernels::buffer& weights) const;

  std::span<const weight_area> areas_;
  kernels::host_buffer taken_;          // [places], those of one area behind those of the other
  std::vector<std::uint64_t> digests_;  // [areas]
  std::uint64_t seed_ = 0;
};

}  // namespace weir::core
