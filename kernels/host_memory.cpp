#include "kernels/host_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <string>

#include "kernels/host_room.h"

namespace weir::kernels {

namespace {

// Asks for huge pages where the system has them. Touches every page, so that the system maps it now and not
// in the middle of a step.
void commit(void* at, std::uint64_t bytes) {
  ::madvise(at, bytes, MADV_HUGEPAGE);
  for (std::uint64_t i = 0; i < bytes; i += host_pieces.unit)
    static_cast<volatile std::byte*>(at)[i] = std::byte{0};
}

}  // namespace

void* host_allocate(void*, std::uint64_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  commit(data, bytes);
  return data;
}

// Nothing is committed: a page has memory once it is written (mmap(2), MAP_NORESERVE).
void* host_reserve(void*, std::uint64_t bytes, std::uint64_t) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

void host_free(void*, void* at, std::uint64_t bytes) { ::munmap(at, bytes); }

// The system takes the pages, and gives zeroed ones when the addresses are used next (Linux, madvise(2)).
std::uint64_t host_give_back(void*, void* at, std::uint64_t bytes) {
  return ::madvise(at, bytes, MADV_DONTNEED) == 0 ? bytes : 0;
}

// The system would end a process that touches more than there is: it is asked first.
bool host_take_again(void*, void* at, std::uint64_t bytes) {
  if (host_room() < bytes) return false;
  commit(at, bytes);
  return true;
}

void host_move(void*, void* to, const void* from, std::uint64_t bytes) { std::memcpy(to, from, bytes); }

void host_copy(void*, const copy& c) {
  auto* to = static_cast<std::byte*>(c.to);
  const auto* from = static_cast<const std::byte*>(c.from);
  for (std::uint32_t i = 0; i < c.count; ++i)
    std::memcpy(to + i * c.to_stride, from + i * c.from_stride, c.bytes);
}

std::uint64_t host_free_bytes(void*) {
  std::ifstream in("/proc/meminfo");
  for (std::string key, unit; in >> key;) {
    std::uint64_t kb = 0;
    in >> kb >> unit;
    if (key == "MemAvailable:") return kb * 1024;
  }
  return 0;
}

std::uint64_t host_rows_bytes(void*, dtype type, std::uint32_t rows, std::uint32_t cols) {
  return matrix{nullptr, type, rows, cols}.bytes();
}

void host_pack_rows(void*, const matrix& rows_on_host, void* to) {
  std::memcpy(to, rows_on_host.data, rows_on_host.bytes());
}

void host_read(void*, const void* at, std::uint64_t bytes) {
  const auto* from = static_cast<const std::byte*>(at);
  std::uint64_t sums[8] = {}, i = 0;
  for (; i + sizeof sums <= bytes; i += sizeof sums) {
    std::uint64_t words[8];
    std::memcpy(words, from + i, sizeof words);
    for (int j = 0; j < 8; ++j) sums[j] += words[j];
  }
  for (; i < bytes; ++i) sums[0] += static_cast<std::uint64_t>(from[i]);
  // Uses the sums, so that the compiler does not leave the reads out.
  for (const std::uint64_t& sum : sums) asm volatile("" : : "r"(sum));
}

}  // namespace weir::kernels
