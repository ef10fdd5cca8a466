#include "core/model/pool_memory.h"

#include <cassert>
#include <numeric>
#include <utility>

namespace weir::core {
namespace {

kernels::pool_steps steps_for(const kernels::backend& of, const std::vector<pool_memory::part>& parts) {
  std::vector<std::uint64_t> bytes;
  for (const pool_memory::part& p : parts) bytes.push_back(p.bytes);
  const bool able = of.do_reserve && of.do_give_back && of.do_take_again;
  return kernels::steps_of(able ? of.pieces : kernels::memory_pieces{}, bytes);
}

}  // namespace

pool_memory::pool_memory(std::shared_ptr<const kernels::backend> of, std::vector<part> parts)
    : of_(std::move(of)), parts_(std::move(parts)), steps_(steps_for(*of_, parts_)) {
  for (const part& p : parts_) page_bytes_ += p.bytes * p.count;
}

bool pool_memory::allocate(std::uint32_t count, std::uint32_t most) {
  assert(count <= most);
  reserved_.reset();  // first, so that old and new pages need not fit together
  fixed_ = {};
  most_ = most;
  pages_ = held_ = 0;
  if (steps_.change(most)) {
    if (!reserve()) return false;
    const std::uint32_t wanted = steps_.held(count, most);
    if (!take(0, wanted)) return reserved_.reset(), false;
    held_ = wanted;
    pages_ = count;
    return true;
  }
  fixed_ = kernels::buffer(of_, lay_out(1));
  if (!fixed_.data()) return false;
  pages_ = held_ = most;
  return true;
}

// Sets where each run lies, if runs begin at multiples of `piece` bytes; returns the bytes of all.
std::uint64_t pool_memory::lay_out(std::uint64_t piece) {
  std::uint64_t at = 0;
  for (part& p : parts_) {
    p.at = at;
    p.stride = (most_ * p.bytes + piece - 1) / piece * piece;
    at += p.stride * p.count;
  }
  return at;
}

// A step of pages is a whole number of pieces in each run.
std::uint64_t pool_memory::piece_bytes() const {
  std::uint64_t piece = 0;
  for (const part& p : parts_) piece = std::gcd(piece, steps_.step * p.bytes);
  return piece;
}

bool pool_memory::reserve() {
  const std::uint64_t piece = piece_bytes(), bytes = lay_out(piece);
  reserved_ = {static_cast<std::byte*>(of_->do_reserve(of_->self, bytes, piece)), release{of_, bytes}};
  return reserved_ != nullptr;
}

// Takes memory for the pages [from, to) in every run, or in none.
bool pool_memory::take(std::uint32_t from, std::uint32_t to) {
  std::size_t done = 0;
  for (const part& p : parts_)
    for (std::uint32_t run = 0; run < p.count; ++run, ++done) {
      std::byte* at = reserved_.get() + p.at + run * p.stride + from * p.bytes;
      if (of_->do_take_again(of_->self, at, (to - from) * p.bytes)) continue;
      give(from, to, done);
      return false;
    }
  return true;
}

// Gives back the memory of the pages [from, to) in the first `runs` runs.
void pool_memory::give(std::uint32_t from, std::uint32_t to, std::size_t runs) {
  for (const part& p : parts_)
    for (std::uint32_t run = 0; run < p.count && runs > 0; ++run, --runs)
      of_->do_give_back(of_->self, reserved_.get() + p.at + run * p.stride + from * p.bytes,
                        (to - from) * p.bytes);
}

bool pool_memory::resize(std::uint32_t pages) {
  assert(changes() && pages >= 1 && pages <= most_);
  const std::uint32_t wanted = steps_.held(pages, most_);
  if (wanted > held_ && !take(held_, wanted)) return false;
  if (wanted < held_) give(wanted, held_);
  held_ = wanted;
  pages_ = pages;
  return true;
}

void pool_memory::give_back() {
  if (reserved_)
    give(0, held_);
  else if (fixed_.data())
    of_->do_give_back(of_->self, fixed_.data(), fixed_.size());
}

bool pool_memory::take_again() {
  if (reserved_) return take(0, held_);
  return !fixed_.data() || of_->do_take_again(of_->self, fixed_.data(), fixed_.size());
}

}  // namespace weir::core
