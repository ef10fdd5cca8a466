#include "kernels/cuda/device/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <type_traits>

namespace weir::kernels {
namespace {

// Numbers of the library: NVML_CLOCK_SM, NVML_TEMPERATURE_GPU, nvmlClocksEventReason….
constexpr int clock_sm = 1, sensor_gpu = 0;
constexpr unsigned long long power_reasons = 0x04 | 0x80;        // SwPowerCap, HwPowerBrakeSlowdown
constexpr unsigned long long heat_reasons = 0x08 | 0x20 | 0x40;  // HwSlowdown, Sw- and HwThermalSlowdown

// Loads the library once. Null: it or one of its functions is missing, and `why` says which.
const nvml_library* load(std::string& why) {
  static nvml_library library;
  static std::string missing;
  static const bool loaded = [] {
    void* handle = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* e = ::dlerror();
      missing = e ? e : "libnvidia-ml.so.1";
      return false;
    }
    const auto bind = [&](auto& to, const char* symbol) {
      to = reinterpret_cast<std::decay_t<decltype(to)>>(::dlsym(handle, symbol));
      if (!to) missing = std::string("libnvidia-ml.so.1 has no ") + symbol;
    };
    bind(library.init, "nvmlInit_v2");
    bind(library.by_bus, "nvmlDeviceGetHandleByPciBusId_v2");
    bind(library.clock, "nvmlDeviceGetClockInfo");
    bind(library.most_clock, "nvmlDeviceGetMaxClockInfo");
    bind(library.temperature, "nvmlDeviceGetTemperature");
    bind(library.holds, "nvmlDeviceGetCurrentClocksThrottleReasons");
    bind(library.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (missing.empty())
      if (const int code = library.init(); code != 0)
        missing = "libnvidia-ml.so.1 does not start, code " + std::to_string(code);
    return missing.empty();
  }();
  why = missing;
  return loaded ? &library : nullptr;
}

// Counts the processes beside `self`, and their memory where all of it is known.
void count_others(const nvml_library& library, void* device, unsigned self, device_state& s) {
  std::array<nvml_library::process, 64> found{};
  auto count = static_cast<unsigned>(found.size());
  if (library.processes(device, &count, found.data()) != 0) return;
  s.others = 0;
  s.others_bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (found[i].pid == self) continue;
    ++*s.others;
    if (found[i].bytes == ~0ull)
      s.others_bytes.reset();
    else if (s.others_bytes)
      *s.others_bytes += found[i].bytes;
  }
}

}  // namespace

device_state read_state(const nvml_library& library, const std::string& bus, unsigned self) {
  device_state s;
  void* device = nullptr;
  if (const int code = library.by_bus(bus.c_str(), &device); code != 0) {
    s.why_unknown = "the management library refuses device " + bus + ", code " + std::to_string(code);
    return s;
  }
  const auto read = [](std::optional<unsigned>& to, auto&& call) {
    unsigned v = 0;
    if (call(&v) == 0) to = v;
  };
  read(s.clock_mhz, [&](unsigned* v) { return library.clock(device, clock_sm, v); });
  read(s.most_clock_mhz, [&](unsigned* v) { return library.most_clock(device, clock_sm, v); });
  read(s.celsius, [&](unsigned* v) { return library.temperature(device, sensor_gpu, v); });
  unsigned long long reasons = 0;
  if (library.holds(device, &reasons) == 0) {
    s.held_by_heat = (reasons & heat_reasons) != 0;
    s.held_by_power = (reasons & power_reasons) != 0;
  }
  count_others(library, device, self, s);
  return s;
}

device_state read_state(const std::string& bus) {
  device_state s;
  const nvml_library* library = load(s.why_unknown);
  return library ? read_state(*library, bus, static_cast<unsigned>(::getpid())) : s;
}

}  // namespace weir::kernels
