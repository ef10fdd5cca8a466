#include "net/lasting_coroutine.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "core/insist.h"

namespace weir::net {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds until_memory{10};

struct lasting {
  asio::any_io_executor ex;
  std::function<asio::awaitable<void>()> body;
};

void begin(std::shared_ptr<const lasting> what);

void begin_again(const std::shared_ptr<const lasting>& what) {
  std::this_thread::sleep_for(until_memory);
  try {
    begin(what);
  } catch (const std::bad_alloc&) {  // its `rebirth` has posted the next try
  }
}

// Completion handler of the coroutine. Asio destroys it uncalled where it destroys the coroutine.
class rebirth {
 public:
  explicit rebirth(std::shared_ptr<const lasting> what) : what_(std::move(what)) {}
  rebirth(rebirth&&) noexcept = default;
  ~rebirth() {
    if (what_) core::insist([this] { asio::post(what_->ex, [what = what_] { begin_again(what); }); });
  }

  void operator()(const std::exception_ptr& failed) noexcept {
    if (!failed) what_.reset();
  }

 private:
  std::shared_ptr<const lasting> what_;  // null: the coroutine has ended, or this object was moved from
};

void begin(std::shared_ptr<const lasting> what) {
  asio::co_spawn(what->ex, [what] { return what->body(); }, rebirth(what));
}

}  // namespace

void spawn_lasting(const asio::any_io_executor& ex, std::function<asio::awaitable<void>()> body) {
  begin(std::make_shared<const lasting>(lasting{ex, std::move(body)}));
}

}  // namespace weir::net
