#include "actors/loader.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "actors/gpu_owner.h"
#include "core/engine.h"
#include "core/insist.h"

namespace weir::actors {

loader::loader(std::shared_ptr<const owner_options> o, surroundings s, boost::asio::any_io_executor where)
    : options_(std::move(o)), around_(std::move(s)), where_(std::move(where)) {
  if (where_) return;
  exclusive_thread::options own{.name = "weir-load"};
  own.on_escape = [seen = around_.seen](std::exception_ptr what) {
    seen->note("the loader's thread", std::move(what));
  };
  where_ = thread_.emplace(std::move(own)).get_executor();
}

void loader::load(model_spec spec, model_progress progress, std::function<void(loaded)> done) {
  boost::asio::post(where_,
                    [o = options_, around = around_, spec = std::move(spec), progress = std::move(progress),
                     done = std::move(done)] { done(load_now(*o, around, spec, progress)); });
}

void loader::sleep(std::unique_ptr<core::engine> e, napped done) {
  nap(std::move(e), &core::engine::sleep, std::move(done));
}

void loader::wake(std::unique_ptr<core::engine> e, napped done) {
  nap(std::move(e), &core::engine::wake, std::move(done));
}

// An engine that threw is in no known state: it is treated as one that is broken.
void loader::nap(std::unique_ptr<core::engine> e,
                 core::result<> (core::engine::*what)(const std::atomic<bool>*), napped done) {
  const auto held = std::make_shared<std::unique_ptr<core::engine>>(std::move(e));
  boost::asio::post(where_, [held, what, done = std::move(done), seen = around_.seen, busy = around_.busy] {
    core::result<> result = core::make_error(core::errc::internal, "the engine did not sleep or wake");
    core::contained(*seen, "the sleep of a model", [&] { result = ((**held).*what)(busy.get()); });
    if (!result && result.error().code == core::errc::internal) held->reset();
    done(std::move(*held), std::move(result));
  });
}

void loader::set_pages(std::shared_ptr<pool_change_word> change, std::function<void(core::result<>)> done) {
  boost::asio::post(where_, [change = std::move(change), done = std::move(done), seen = around_.seen] {
    core::result<> result = core::make_error(core::errc::internal, "the pool of pages was not changed");
    core::contained(*seen, "the pool of a model", [&] { result = change->carry_out(); });
    done(std::move(result));
  });
}

void loader::destroy(std::unique_ptr<core::engine> e, std::function<void()> done) {
  // The post below may be tried several times, so a shared pointer holds the engine.
  const auto last = std::make_shared<std::unique_ptr<core::engine>>(std::move(e));
  core::insist([&] {
    boost::asio::post(where_, [last, done] {
      last->reset();
      done();
    });
  });
}

loaded load_now(const owner_options& o, const loader::surroundings& s, const model_spec& spec,
                const model_progress& progress) {
  std::shared_ptr<const kernels::backend> backend;
  loaded out = core::make_error(core::errc::internal, "{}: the load was not finished", spec.name);
  core::contained(*s.seen, "the load of a model", [&] {
    if (o.device != "sim") {
      auto made = core::make_backend(o.device, o.threads, o.deterministic, o.activations);
      if (!made) return void(out = made.error());
      backend = std::move(*made);
      if (backend->do_give_way) backend->do_give_way(backend->self, s.busy.get());
    }
    try {
      out = open_model(spec, o, backend, progress, [&time = s.time](core::duration d) { time.spend(d); });
      if (out) make_engine(**out, s.time, s.masks);
    } catch (const std::bad_alloc&) {
      out = core::make_error(core::errc::does_not_fit, "{}: out of memory", spec.source);
    }
  });
  if (backend && backend->do_give_way) backend->do_give_way(backend->self, nullptr);
  return out;
}

}  // namespace weir::actors
