#include "kernels/cuda/device/machine.h"

#include <fmt/format.h>

namespace weir::kernels {
namespace {

std::string version(int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); }

std::string capability(int c) { return fmt::format("{}.{}", c / 10, c % 10); }

}  // namespace

cuda_machine machine_of(const cuda_count& c) {
  if (c.failure.empty() && c.devices > 0) return {cuda_presence::there, c.devices, {}};
  if (c.driver == 0)
    return {cuda_presence::none, 0,
            "no CUDA driver is installed; for a GPU install NVIDIA's driver, and nvidia-smi must list it"};
  if (c.failure.empty() || c.no_device)
    return {cuda_presence::none, 0,
            "the CUDA driver sees no device; where there is one, nvidia-smi must list it, and "
            "CUDA_VISIBLE_DEVICES must not hide it"};
  if (c.driver_too_old)
    return {cuda_presence::failing, 0,
            fmt::format("the NVIDIA driver supports CUDA {}, and this weir was built with CUDA {}; install a "
                        "newer driver, or build weir with CUDA {}; --device cpu does without a GPU",
                        version(c.driver), version(c.runtime), version(c.driver))};
  return {
      cuda_presence::failing, 0,
      fmt::format("CUDA cannot use the devices of this machine ({}); nvidia-smi may say why; --device cpu "
                  "does without a GPU",
                  c.failure)};
}

std::string refusal_of(const cuda_opening& o) {
  if (o.capability < least_capability)
    return fmt::format(
        "{} has compute capability {}, and weir needs {} or later (an RTX 30, an A100 or newer); "
        "--device cpu does without a GPU",
        o.name, capability(o.capability), capability(least_capability));
  if (o.newer_ptx)
    return fmt::format(
        "{}: the NVIDIA driver is too old to compile this build's PTX for compute capability {}; install a "
        "newer driver, or build weir on this machine with ./run build",
        o.name, capability(o.capability));
  if (!o.runs_code)
    return fmt::format(
        "{} has compute capability {}, and this build has code for {} alone; build weir on this machine with "
        "./run build, or for every device with ./run build release-all",
        o.name, capability(o.capability), o.built_for);
  if (o.memory_short) {
    const std::string free = o.free > 0 ? fmt::format("{} of its", o.free >> 20) : "hardly any of its";
    return fmt::format(
        "{} is full: {} {} MiB are free, and weir takes {} MiB before it loads a model; end what else "
        "uses the device (nvidia-smi lists it), or name another one with --device cuda:N",
        o.name, free, o.total >> 20, o.wanted >> 20);
  }
  return {};
}

}  // namespace weir::kernels
