// descriptors.h — raises the limit on file descriptors. Each socket needs one, and the soft limit is often
// 1,024.
#pragma once

#include <sys/resource.h>

namespace weir::apps {

inline void raise_descriptor_limit() {
  rlimit r{};
  if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= r.rlim_max) return;
  r.rlim_cur = r.rlim_max;
  setrlimit(RLIMIT_NOFILE, &r);
}

}  // namespace weir::apps
