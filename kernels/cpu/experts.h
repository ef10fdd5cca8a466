// experts.h — the products of a mixture's experts on all threads: which rows each expert has, and which
// thread multiplies which panels of which expert.
//
// The slots of each expert are counted once, and cut into blocks of as many rows as the registers hold. A
// unit of work is an expert's blocks and a chunk of its panels. The units of all experts are one list, of
// which each worker has a share of equal work; a worker that has done its share takes units of the others'.
// So a call has one barrier behind the preparation of activations and one at its end, whatever the number of
// experts. An expert with a single block has one panel a unit, and its weights are streamed: each panel
// prefetches the next, also from one expert to the next.
//
// Prepared activations are bounded: where blocks need more memory, the call is done in waves.
//
// Thread safety: multiply() from one thread at a time, the one that uses the backend.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/team.h"
#include "kernels/ops.h"

namespace weir::kernels {

class expert_products {
 public:
  explicit expert_products(unsigned workers) : shares_(workers), workers_(workers) {}

  // Computes `op` by `path` on all threads of `workers`, and returns when it is done.
  void multiply(const expert_linear& op, const product_path& path, team& workers);

 private:
  struct job;
  // Some slots of one expert, whose activations are prepared together.
  struct block {
    std::uint32_t expert = 0, first = 0, rows = 0;  // slots order_[first, first + rows)
    bool shared = false;                            // an earlier block prepares the same row
    std::size_t prepared = 0;                       // where its activations are in prepared_
  };
  // Blocks that are prepared together, and the bytes of what is prepared.
  struct wave {
    std::size_t first = 0, last = 0, bytes = 0;
  };
  // The blocks of one expert in a wave.
  struct piece {
    std::uint32_t expert = 0, first_block = 0, blocks = 0;
    std::uint32_t chunk = 1;        // panels of a unit
    std::uint32_t first_unit = 0;   // in the wave
    std::uint64_t work_before = 0;  // blocks times panels, of the pieces in front of it
  };
  struct alignas(64) share {
    std::atomic<std::uint32_t> next{0};  // the first unit that no worker has taken
    std::uint32_t last = 0;              // behind its last unit
    const std::byte* then = nullptr;     // a guess at what the worker reads after this product; or null
  };
  struct worker {
    scratch<float> sums;       // [panels of a chunk, rows of a block, panel_rows]
    scratch<float> rows;       // [rows of a block, k] activations that lie apart, put together
    scratch<std::byte> panel;  // a panel of weights that come as rows, packed for this product
  };

  void sort_slots(const expert_linear& op);
  void cut_into_blocks(const job& j);
  wave place_wave(const job& j, std::size_t first);
  void run_wave(const job& j, const wave& w, team& workers);
  void prepare(const job& j, const block& b, worker& at);
  void make_pieces(const job& j, std::size_t first, std::size_t last, std::size_t threads);
  std::size_t share_out(const job& j, std::size_t threads);
  const std::byte* start_of_next(const job& j, std::size_t part, std::size_t parts) const;
  void work(const job& j, std::size_t parts, unsigned worker);
  const piece& piece_of(std::uint32_t unit) const;
  const std::byte* panels_of_unit(const job& j, std::uint32_t unit) const;
  void multiply_unit(const job& j, std::uint32_t unit, const std::byte* ahead, worker& at);
  void multiply_block(const job& j, const piece& p, const block& b, const std::byte* panels,
                      std::size_t first, std::size_t last, const std::byte* ahead, worker& at);
  void finish(const job& j, const block& b, std::size_t first, std::size_t last, const float* sums) const;
  void remember(const expert_linear& op);

  std::vector<share> shares_;
  std::vector<worker> workers_;
  std::vector<std::uint32_t> ends_;   // [experts] the end of each expert's slots in order_
  std::vector<std::uint32_t> order_;  // [slots] by expert, then by number
  std::vector<block> blocks_;
  std::vector<piece> pieces_;       // of the present wave
  std::uint32_t units_ = 0;         // of the present wave
  std::vector<std::size_t> alone_;  // [rows of x] where a row that is a block by itself is in prepared_
  scratch<std::byte> prepared_;     // the activations, block by block

  // Which second product of the experts follows which first one, for prefetching only.
  static constexpr std::size_t remembered = 256;
  struct succession {
    const void* before = nullptr;
    expert_matrices after;
  };
  std::array<succession, remembered> successions_;
  const void* previous_ = nullptr;  // the weights of the last product, if it was a first one
};

}  // namespace weir::kernels
