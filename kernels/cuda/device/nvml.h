// nvml.h — the state of a device, which explains measurements: its clock, what holds the clock down, and who
// else uses the device. The state is read from NVIDIA's management library (NVML API reference). The library
// comes with the driver and is loaded at the first reading, so that weir starts without it.
//
// Thread safety: any thread. A reading takes about a millisecond, so it has no place in a step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weir::kernels {

// A member is absent where the library refuses it, as it does for many members on a part of a device.
struct device_state {
  std::string why_unknown;                            // why nothing could be read; empty: something could
  std::optional<unsigned> clock_mhz, most_clock_mhz;  // of the multiprocessors: now, and at most
  std::optional<unsigned> celsius;
  std::optional<bool> held_by_heat, held_by_power;  // whether the clock is lower for that reason
  std::optional<unsigned> others;                   // other processes that compute on the device
  std::optional<std::uint64_t> others_bytes;        // their memory
};

// The functions of the library that are used. The types are the library's, written out: a handle, and codes
// of which 0 is success.
struct nvml_library {
  struct process {
    unsigned pid;
    unsigned long long bytes;  // all ones: not known
    unsigned gpu_instance, compute_instance;
  };
  int (*init)() = nullptr;
  int (*by_bus)(const char* bus, void** device) = nullptr;
  int (*clock)(void* device, int which, unsigned* mhz) = nullptr;
  int (*most_clock)(void* device, int which, unsigned* mhz) = nullptr;
  int (*temperature)(void* device, int sensor, unsigned* celsius) = nullptr;
  int (*holds)(void* device, unsigned long long* reasons) = nullptr;
  int (*processes)(void* device, unsigned* count, process* out) = nullptr;
};

// Reads the state of the device at PCI address `bus`. `self`: the id of the process that does not count among
// the others.
device_state read_state(const nvml_library& library, const std::string& bus, unsigned self);

// The same by the driver's own library, for the calling process.
device_state read_state(const std::string& bus);

}  // namespace weir::kernels
