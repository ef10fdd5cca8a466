// host_memory.h — the memory entries of backends that compute on the host, with weights as rows.
//
// Thread safety: any thread. `self` is not used.
#pragma once

#include "kernels/ops.h"

namespace weir::kernels {

void* host_allocate(void* self, std::uint64_t bytes);
void host_free(void* self, void* at, std::uint64_t bytes);
// Pieces of the host are its smallest pages.
inline constexpr memory_pieces host_pieces{4096, 4096};
void* host_reserve(void* self, std::uint64_t bytes, std::uint64_t piece);
std::uint64_t host_give_back(void* self, void* at, std::uint64_t bytes);
bool host_take_again(void* self, void* at, std::uint64_t bytes);
void host_move(void* self, void* to, const void* from, std::uint64_t bytes);  // do_upload and do_download
void host_copy(void* self, const copy&);
std::uint64_t host_free_bytes(void* self);  // what the system reports as available now
std::uint64_t host_rows_bytes(void* self, dtype, std::uint32_t rows, std::uint32_t cols);
void host_pack_rows(void* self, const matrix& rows_on_host, void* to);
void host_read(void* self, const void* at, std::uint64_t bytes);

}  // namespace weir::kernels
