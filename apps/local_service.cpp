#include "apps/local_service.h"

#include <algorithm>
#include <iostream>

#include "apps/commands.h"
#include "apps/engine_options.h"
#include "apps/progress.h"
#include "core/visible.h"

namespace weir::apps {

int exit_of(const core::error& e) {
  switch (e.code) {
    case core::errc::does_not_fit: return exit_code::does_not_fit;
    case core::errc::internal: return exit_code::internal_error;
    default: return exit_code::bad_usage;
  }
}

local_service::local_service(const core::engine_settings& s, std::uint32_t jobs) {
  core::result<> loaded;
  std::string why_cpu;
  if (auto o = service_options_of(s, core::queue_of(jobs), why_cpu); o) {
    o->owner.max_batch = std::min(o->owner.max_batch, jobs);  // pages for as many long sequences, by default
    if (on_terminal()) show_device(why_cpu);
    service_ = std::make_unique<actors::service>(std::move(*o), clock_);
    auto work = boost::asio::make_work_guard(io_);
    service_->load(show_load_progress(), io_.get_executor(), [&](core::result<> r) {
      loaded = std::move(r);
      work.reset();
    });
    io_.run();
    io_.restart();
  } else {
    loaded = o.error();
  }
  if (loaded) return;
  std::cerr << core::visible(loaded.error().message) << '\n';
  exit_ = exit_of(loaded.error());
}

}  // namespace weir::apps
