#include "apps/terminate.h"

#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "core/incidents.h"

namespace weir::apps {
namespace {

[[noreturn]] void say_where() {
  std::array<char, 16> thread{};
  pthread_getname_np(pthread_self(), thread.data(), thread.size());
  std::fprintf(stderr, "weir ends: std::terminate on thread %s", thread.data());
  if (const auto what = std::current_exception())
    std::fprintf(stderr, ": %s", core::incidents::text_of(what).c_str());
  std::fputs("\n", stderr);
  std::array<void*, 64> calls{};
  backtrace_symbols_fd(calls.data(), backtrace(calls.data(), static_cast<int>(calls.size())), STDERR_FILENO);
  std::abort();
}

}  // namespace

void say_where_on_terminate() { std::set_terminate(say_where); }

}  // namespace weir::apps
