// response_store.h — the responses that ended and can be read again or gone on with: for whom each is kept,
// and for how long.
//
// A response is kept for store_limits::keep after it was stored, or after a response went on with it. All of
// them together take at most store_limits::bytes, and none is kept while clients use over half of their
// memory account (core/memory/account.h). Where there are more, those leave first that were neither stored
// nor gone on with for the longest time. A response that goes on with others keeps nothing of theirs: where
// one of them has left, it cannot be gone on with either.
//
// Whoever does not own a response (principal::has()) learns nothing of it, admins included.
//
// Thread safety: of response_store, one owner; of response_desk, any thread.
//
// Invariants:
//   1. bytes() is the sum of the bytes of all responses, and is what the account counts of them.
//   2. order_ names each response once, the one that leaves next first.
#pragma once

#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/job_stream.h"
#include "actors/request.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/job.h"
#include "core/memory/account.h"
#include "net/protocol/responses.h"

namespace weir::net {

struct store_limits {
  core::duration keep = std::chrono::hours(1);
  std::uint64_t bytes = std::uint64_t{256} << 20;
};

// A response. Constant, so that shards can share it.
struct stored_response {
  core::job_id id;
  actors::principal owner;
  std::string previous;  // id of the response that it went on with; empty: none
  std::string items;     // its input: JSON of an array of items, each with an id
  std::string object;    // the response object as JSON
  responses::output_place output_at;  // in `object`

  // JSON of an array of the items of the answer.
  std::string_view output() const { return std::string_view(object).substr(output_at.begin, output_at.size); }

  std::uint64_t memory() const noexcept;
};
using stored_ptr = std::shared_ptr<const stored_response>;

class response_store {
 public:
  // Responses in a row that can be gone on with.
  static constexpr std::size_t longest_chain = 1000;

  // `time` must outlive this object.
  response_store(const core::clock& time, store_limits most, std::shared_ptr<core::memory_account> account)
      : time_(time), most_(most), account_(std::move(account)), held_(account_) {}

  // Keeps a response. False: there is no room for it. A response with the same id is replaced.
  bool keep(stored_ptr r);
  // The response of resp_ID or ID; null: there is none that `who` may see.
  stored_ptr find(std::string_view id, const actors::principal& who) const;
  // The response and all those before it, the oldest first; each of them stays for another
  // store_limits::keep. Empty: one of them is not kept. Error: invalid_param, if they are over longest_chain.
  core::result<std::vector<stored_ptr>> chain(std::string_view id, const actors::principal& who);
  // Forgets a response. False: there is none that `who` may see.
  bool forget(std::string_view id, const actors::principal& who);
  // Drops the responses whose time is over, or whose room is needed.
  void tick();

  std::size_t size() const noexcept { return all_.size(); }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  struct entry {
    stored_ptr response;
    core::time_point leaves_at;
    std::list<core::job_id>::iterator place;  // in order_
  };
  using entries = std::unordered_map<core::job_id, entry, core::job_id_hash>;

  entries::const_iterator at(std::string_view id, const actors::principal& who) const;
  void renew(entry& e);
  void drop(entries::iterator e);
  bool room_is_over() const noexcept;

  const core::clock& time_;
  const store_limits most_;
  const std::shared_ptr<core::memory_account> account_;
  core::memory_hold held_;
  std::uint64_t bytes_ = 0;
  entries all_;
  std::list<core::job_id> order_;
};

// The door to a store whose owner is another thread.
class response_desk : public std::enable_shared_from_this<response_desk> {
 public:
  // `owner`: where the store is used from now on.
  response_desk(actors::executor owner, std::unique_ptr<response_store> store)
      : owner_(std::move(owner)), store_(std::move(store)) {}

  // Calls `work(store)` on the owner's thread, then done(its result) on `back`.
  template <class Work, class Done>
  void ask(const actors::executor& back, Work work, Done done) {
    boost::asio::post(
        owner_, [me = shared_from_this(), back, work = std::move(work), done = std::move(done)]() mutable {
          boost::asio::post(back, [answer = work(*me->store_), done = std::move(done)]() mutable {
            done(std::move(answer));
          });
        });
  }
  // Calls `work(store)` on the owner's thread.
  template <class Work>
  void tell(Work work) {
    boost::asio::post(owner_,
                      [me = shared_from_this(), work = std::move(work)]() mutable { work(*me->store_); });
  }

 private:
  const actors::executor owner_;
  const std::unique_ptr<response_store> store_;
};

// How a client reads a list of items.
struct item_page {
  std::size_t limit = 20;  // 1 to most_items_of_a_page
  bool newest_first = true;
  std::string after;  // id of the last item of the page before; empty: from the beginning
};
inline constexpr std::size_t most_items_of_a_page = 100;

// The body of an answer to …/input_items: {"object":"list","data","first_id","last_id","has_more"}. `items`:
// as in stored_response. Error: invalid_param, where there is no item `after`, or `limit` is out of its
// range.
core::result<std::string> list_of_items(std::string_view items, const item_page& page);

// The body of an answer to a deletion: {"id","object":"response","deleted":true}.
std::string deletion_body(const core::job_id& id);

}  // namespace weir::net
