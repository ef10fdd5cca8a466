// machine.h — what CUDA answers about this machine and its devices, and the messages that follow from the
// answers. Nothing here calls CUDA: backend.cu and device.cu ask, and a test may answer in CUDA's place.
//
// Thread safety: all functions are pure.
#pragma once

#include <cstdint>
#include <string>

namespace weir::kernels {

enum class cuda_presence {
  none,    // there is no device: no driver, or a driver that says so
  there,   // at least one device
  failing  // there may be devices, and CUDA cannot use them
};

// What CUDA answers when its devices are counted. Versions are CUDA's: 1000 * major + 10 * minor.
struct cuda_count {
  int driver = 0;   // the version that the driver supports; 0: no driver is installed
  int runtime = 0;  // the version that weir was built with
  int devices = 0;
  bool no_device = false;       // CUDA says that there is no device
  bool driver_too_old = false;  // CUDA says that the driver is too old for `runtime`
  std::string failure;          // CUDA's words where it could not count; else empty
};

struct cuda_machine {
  cuda_presence presence = cuda_presence::none;
  int devices = 0;
  std::string why;  // where `presence` is not `there`: the reason, and what to do about it
};

cuda_machine machine_of(const cuda_count& count);

// What CUDA answers when a device is opened.
struct cuda_opening {
  std::string name;           // of the device, as backend::name has it: "cuda:0 (NVIDIA L4)"
  int capability = 0;         // 10 * major + minor
  std::string built_for;      // the architectures that this build has code for, as CMake names them
  bool runs_code = true;      // a kernel of this build has run on the device
  bool newer_ptx = false;     // the driver is too old to compile this build's PTX
  bool memory_short = false;  // the device had no memory for the backend's own buffers
  std::uint64_t free = 0, total = 0, wanted = 0;  // bytes; free 0: not known; wanted: for those buffers
};

// The least compute capability that the kernels support.
constexpr int least_capability = 80;

// Why the device cannot be used, and what to do about it. Empty: it can be used.
std::string refusal_of(const cuda_opening& o);

}  // namespace weir::kernels
