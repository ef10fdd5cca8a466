// load_line.h — the requests that wait for models to be loaded, in the order in which they came.
//
// Thread safety: one thread, the model registry's. The calls of a wish are made there and do not wait.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "actors/model_use.h"
#include "actors/served_model.h"
#include "core/clock.h"
#include "core/error.h"

namespace weir::actors {

class model_list;

// Bounds of the time after which a client that is told to come again comes.
inline constexpr std::uint32_t least_retry_ms = 1000, most_retry_ms = 120'000;

// The way to a model that is ready.
struct model_way {
  std::shared_ptr<const served_model> model;  // never null
  model_use::way way;                         // never null
};

// A request that waits for a model.
struct model_wish {
  std::string model;
  std::uint64_t key = 0;                              // principal::key; 0: none
  core::time_point since{}, until{};                  // it came; it is refused
  core::duration stay{};                              // as in model_use::enter()
  std::function<bool()> gone;                         // nobody waits for its answer any more
  std::function<void(std::uint32_t ahead)> begins;    // it waits, with so many requests before it
  std::function<void(core::result<model_way>)> done;  // called once, unless it is gone
};

class load_line {
 public:
  // Most requests that wait: of all clients, and of one key.
  static constexpr std::size_t most = 256, most_of_key = 64;

  // Takes a wish in. Errors, about the field `model`: overloaded, where the line or the key's part of it is
  // full; busy, where the key waits for another model already.
  core::result<void> enter(model_wish w);
  // The same; an error, and a want of memory, goes to done().
  void take(model_wish w);

  bool empty() const noexcept { return all_.empty(); }
  std::size_t size() const noexcept { return all_.size(); }
  bool wants(std::string_view model) const;
  // The oldest wish for a model that is not in `besides`; null: there is none.
  const model_wish* oldest(const std::set<std::string>& besides) const;
  const model_wish* oldest_for(std::string_view model) const;

  // Drops wishes that are gone, and refuses those whose time is over with what `late` says.
  void tidy(core::time_point now, const std::function<core::error(const model_wish&)>& late);
  // Calls done(answer()) of each wish for `model`, the oldest first, until an answer is no way: that wish and
  // those behind it stay.
  void let_in(std::string_view model, const std::function<std::optional<model_way>(const model_wish&)>& way);
  // Refuses all wishes for `model`, or all that there are.
  void refuse(std::string_view model, const core::error& why);
  void refuse_all(const core::error& why);

 private:
  std::list<model_wish> all_;
};

// What a wish is told whose time is over.
core::error late_for(const model_list& list, const model_wish& w, core::time_point now);

}  // namespace weir::actors
