#include "actors/load_line.h"

#include <algorithm>
#include <utility>

#include "actors/model_list.h"
#include "core/shortened.h"

namespace weir::actors {
namespace {

// `code`: overloaded, the line is full; busy, the key waits for another model. Both are about the field
// model, by which the wire names them apart from other refusals.
core::error no_place(core::errc code, std::string message) {
  core::error e{code, std::move(message), "model"};
  e.retry_after_ms = 1000;
  return e;
}

}  // namespace

core::result<void> load_line::enter(model_wish w) {
  if (all_.size() >= most)
    return no_place(core::errc::overloaded,
                    fmt::format("{} requests wait for models, which are the most", most));
  std::size_t of_key = 0;
  for (const auto& other : all_) {
    if (w.key == 0 || other.key != w.key) continue;
    ++of_key;
    if (other.model != w.model)
      return no_place(core::errc::busy,
                      fmt::format("this key waits for the model '{}' already: one at a time",
                                  core::shortened(other.model)));
  }
  if (of_key >= most_of_key)
    return no_place(core::errc::overloaded,
                    fmt::format("{} requests of this key wait for a model, which are the most", most_of_key));
  const auto ahead = static_cast<std::uint32_t>(all_.size());
  all_.push_back(std::move(w));
  if (all_.back().begins) all_.back().begins(ahead);
  return {};
}

void load_line::take(model_wish w) {
  const auto done = w.done;
  core::error why = core::make_error(core::errc::internal, "the wait for a model did not begin");
  try {
    const auto in = enter(std::move(w));
    if (in) return;
    why = in.error();
  } catch (const std::exception& e) {  // no memory: the client hears of it
    why.message = e.what();
  }
  done(std::move(why));
}

bool load_line::wants(std::string_view model) const { return oldest_for(model) != nullptr; }

const model_wish* load_line::oldest(const std::set<std::string>& besides) const {
  const auto at = std::ranges::find_if(all_, [&](const auto& w) { return !besides.contains(w.model); });
  return at == all_.end() ? nullptr : &*at;
}

const model_wish* load_line::oldest_for(std::string_view model) const {
  const auto at = std::ranges::find(all_, model, &model_wish::model);
  return at == all_.end() ? nullptr : &*at;
}

void load_line::tidy(core::time_point now, const std::function<core::error(const model_wish&)>& late) {
  all_.remove_if([&](model_wish& w) {
    if (w.gone()) return true;
    if (now < w.until) return false;
    w.done(late(w));
    return true;
  });
}

void load_line::let_in(std::string_view model,
                       const std::function<std::optional<model_way>(const model_wish&)>& way) {
  for (auto at = all_.begin(); at != all_.end();) {
    if (at->model != model) {
      ++at;
      continue;
    }
    auto in = way(*at);
    if (!in) return;
    at->done(std::move(*in));
    at = all_.erase(at);
  }
}

void load_line::refuse(std::string_view model, const core::error& why) {
  all_.remove_if([&](model_wish& w) {
    if (w.model != model) return false;
    w.done(why);
    return true;
  });
}

void load_line::refuse_all(const core::error& why) {
  for (auto& w : std::exchange(all_, {})) w.done(why);
}

core::error late_for(const model_list& list, const model_wish& w, core::time_point now) {
  auto e = core::make_error(core::errc::unavailable, "{} is not loaded after {:.0f} s", w.model,
                            std::chrono::duration<double>(now - w.since).count());
  const auto all = list.look();
  const auto known = list.known(*all, w.model);
  e.param = "model";
  e.retry_after_ms = least_retry_ms;
  if (!known) return e;
  const auto left = model_list::predicted_load(*all, **known);
  e.retry_after_ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(left).count(), least_retry_ms, most_retry_ms));
  return e;
}

}  // namespace weir::actors
