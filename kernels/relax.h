// relax.h — the processor's pause instruction, for a thread that spins on a word which another thread or a
// device will write.
//
// Thread safety: any thread.
#pragma once

namespace weir::kernels {

inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace weir::kernels
