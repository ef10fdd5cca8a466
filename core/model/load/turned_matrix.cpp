#include "core/model/load/turned_matrix.h"

#include <algorithm>
#include <cstring>

#include "core/model/load/fill.h"

namespace weir::core {
namespace {

using u64 = std::uint64_t;

constexpr u64 most_at_once = 4u << 20;  // bytes

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
    std::vector<std::byte> rows, strip;
    while (!to.empty()) {
      const u64 first = at / row_bytes, half = paired_ ? outputs_ / 2 : outputs_;
      const u64 end =
          std::min({(at + to.size() - 1) / row_bytes + 1, first + most, (first / half + 1) * half});
      rows.resize((end - first) * row_bytes);
      if (auto ok = turn(all, first, end, rows, strip); !ok) return ok;
      const u64 skipped = at - first * row_bytes, count = std::min<u64>(rows.size() - skipped, to.size());
      std::memcpy(to.data(), rows.data() + skipped, count);
      at += count;
      to = to.subspan(count);
    }
    return {};
  }

 private:
  // Rows [first, end), which are of one half.
  result<void> turn(const checkpoint& all, u64 first, u64 end, std::span<std::byte> to,
                    std::vector<std::byte>& strip) const {
    const u64 half = outputs_ / 2, step = paired_ ? 2 : 1, count = end - first;
    const u64 column = paired_ ? 2 * (first % half) + first / half : first;
    strip.resize(((count - 1) * step + 1) * wide_);
    for (u64 i = 0; i < inputs_; ++i) {
      if (auto ok = all.read(from_, (i * outputs_ + column) * wide_, strip); !ok) return ok;
      for (u64 r = 0; r < count; ++r)
        std::memcpy(to.data() + (r * inputs_ + i) * wide_, strip.data() + r * step * wide_, wide_);
    }
    return {};
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
