#include "kernels/cuda/sizes.h"

#include "kernels/cuda/backend.h"
#include "kernels/cuda/decoder_room.h"
#include "kernels/cuda/products/cell_form.h"

namespace weir::kernels {
namespace cuda {

// Memory comes and goes by calls that take 44 us each, whatever the piece (vmm.h): 20 GB in pieces of 16 MiB
// take 60 ms.
constexpr std::uint64_t usual_piece = 16u << 20;

void fill_sizes(backend& t, const cuda_facts& facts) {
  t.on_host = false;
  if (facts.memory_unit != 0) t.pieces = {facts.memory_unit, usual_piece};
  t.own_bytes = own_bytes;
  t.weight_bytes = [](void*, dtype type, std::uint32_t rows, std::uint32_t cols) -> std::uint64_t {
    return is_plain(type) ? matrix{nullptr, type, rows, cols}.bytes() : block_bytes(type, rows, cols);
  };
  t.takes_blocks = [](void*, dtype) { return true; };
  t.decoder_stores_kv = [](void*, kv_type type) { return type != kv_type::f32; };
  t.decoder_page_bytes = [](void*, const decoder_shape& s) -> std::uint64_t {
    return takes_all(s) ? page_bytes_of(s) : 0;
  };
}

}  // namespace cuda

std::shared_ptr<const backend> cuda_sizes(const cuda_facts& facts) {
  struct sizes {
    cuda_facts facts;
    backend table;
  };
  auto made = std::make_shared<sizes>();
  made->facts = facts;
  cuda::fill_sizes(made->table, facts);
  made->table.name = "cuda";
  made->table.self = &made->facts;
  made->table.decoder_needs_of = [](void* self, const decoder_shape& s, std::uint32_t decode_rows,
                                    std::uint32_t most_pages) {
    return cuda::needs_of(*static_cast<const cuda_facts*>(self), s, decode_rows, most_pages);
  };
  const backend* table = &made->table;
  return {std::move(made), table};
}

}  // namespace weir::kernels
