// model_watch.h — shows the connections of one shard how models stand, without asking the service for each.
//
// A picture is made when a state changes, and at each tick while a model is being loaded. All followers of
// the shard share it, so a follower that reads slowly has the picture that it reads and then the latest one.
//
// Thread safety: everything on the shard.
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "actors/service.h"

namespace weir::net {

struct server_state;

class model_watch : public std::enable_shared_from_this<model_watch> {
 public:
  using picture = std::shared_ptr<const actors::models_picture>;

  // REQUIRES: `of` outlives it.
  model_watch(server_state& of, actors::executor shard) : server_(of), shard_(std::move(shard)) {}

  // One follower, until it is destroyed. An empty one follows nothing.
  class follower {
   public:
    follower() = default;
    follower(follower&& other) noexcept = default;
    follower& operator=(follower&& other) noexcept;
    ~follower() { leave(); }
    explicit operator bool() const noexcept { return watch_ != nullptr; }
    picture look() const { return watch_->now_; }  // REQUIRES: it is not empty

   private:
    friend class model_watch;
    void leave() noexcept;
    std::shared_ptr<model_watch> watch_;
    std::list<std::function<void()>>::iterator at_;
  };

  // Calls `changed` for each new picture and at each tick. It must not follow or leave. Empty: the server has
  // as many followers as it may have.
  follower follow(std::function<void()> changed);

  void tick();  // time has passed

 private:
  void refresh();

  server_state& server_;
  const actors::executor shard_;
  std::list<std::function<void()>> followers_;
  std::shared_ptr<void> of_service_;  // while there are followers
  picture now_;
  bool loading_ = false;  // a model of now_ is being loaded
};

}  // namespace weir::net
