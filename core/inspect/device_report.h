// device_report.h — what a model takes of one device, before it is loaded.
//
// Thread safety: plain data; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/memory/ledger.h"

namespace weir::core {

struct device_report {
  std::string device;          // cpu, reference, cuda:0
  std::optional<error> wrong;  // why the device does not take the model; nullopt: it does, as far as is known
  memory_lines lines;          // pages: of the pool that a server would allocate
  std::uint64_t page_bytes = 0;
  std::uint64_t free = 0;            // for models, without the reserve; 0: the device does not say
  std::uint64_t kv_tokens = 0;       // that the pool holds
  std::uint32_t context = 0;         // most tokens of a sequence, which the pool may bound
  std::string lacks;                 // what it lacks, in a sentence; empty: the model fits
  std::vector<std::string> assumed;  // figures that were assumed and not measured, for people
};

}  // namespace weir::core
