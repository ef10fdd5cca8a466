#include "core/model/load/turned_matrix.h"

#include <algorithm>
#include <cstring>

#include "core/model/load/fill.h"

namespace weir::core {
namespace {

using u64 = std::uint64_t;

constexpr u64 most_at_once = 4u << 20;  // bytes
constexpr u64 inputs_at_once = 64;

// Some outputs are read at once: a run of columns of each row in the file.
class turned_matrix final : public converted_tensor {
 public:
  turned_matrix(stored_tensor from, bool paired)
      : from_(std::move(from)),
        inputs_(from_.shape[0]),
        outputs_(from_.shape[1]),
        wide_(kernels::size_of(*supported_type(from_.dtype))),
        paired_(paired) {}

  result<void> read(const checkpoint& all, u64 at, std::span<std::byte> to) const override {
    const u64 row_bytes = inputs_ * wide_, most = std::max<u64>(1, most_at_once / row_bytes);
    std::vector<std::byte> rows, strips;
    while (!to.empty()) {
      const u64 first = at / row_bytes, half = paired_ ? outputs_ / 2 : outputs_;
      const u64 end =
          std::min({(at + to.size() - 1) / row_bytes + 1, first + most, (first / half + 1) * half});
      rows.resize((end - first) * row_bytes);
      if (auto ok = turn(all, first, end, rows, strips); !ok) return ok;
      const u64 skipped = at - first * row_bytes, count = std::min<u64>(rows.size() - skipped, to.size());
      std::memcpy(to.data(), rows.data() + skipped, count);
      at += count;
      to = to.subspan(count);
    }
    return {};
  }

 private:
  // Rows [first, end), which are of one half. Some inputs are turned at once, so that runs of a row are
  // written and not single elements.
  result<void> turn(const checkpoint& all, u64 first, u64 end, std::span<std::byte> to,
                    std::vector<std::byte>& strips) const {
    const u64 half = outputs_ / 2, step = paired_ ? 2 : 1, count = end - first;
    const u64 column = paired_ ? 2 * (first % half) + first / half : first;
    const u64 strip = ((count - 1) * step + 1) * wide_;
    strips.resize(inputs_at_once * strip);
    for (u64 input = 0; input < inputs_; input += inputs_at_once) {
      const u64 some = std::min(inputs_at_once, inputs_ - input);
      for (u64 i = 0; i < some; ++i)
        if (auto ok = all.read(from_, ((input + i) * outputs_ + column) * wide_,
                               std::span(strips).subspan(i * strip, strip));
            !ok)
          return ok;
      for (u64 r = 0; r < count; ++r) {
        std::byte* const row = to.data() + (r * inputs_ + input) * wide_;
        wide_ == 2 ? gather<2>(strips.data() + r * step * 2, strip, some, row)
                   : gather<4>(strips.data() + r * step * 4, strip, some, row);
      }
    }
    return {};
  }

  // Elements of `wide` bytes, `apart` bytes from one another.
  template <u64 wide>
  static void gather(const std::byte* from, u64 apart, u64 count, std::byte* to) {
    for (u64 i = 0; i < count; ++i) std::memcpy(to + i * wide, from + i * apart, wide);
  }

  const stored_tensor from_;
  const u64 inputs_, outputs_, wide_;
  const bool paired_;
};

}  // namespace

bool is_plain_type(std::string_view stored) {
  const auto type = supported_type(stored);
  return type && kernels::is_plain(*type);
}

std::shared_ptr<const converted_tensor> make_turned(stored_tensor from, bool paired) {
  return std::make_shared<turned_matrix>(std::move(from), paired);
}

}  // namespace weir::core
