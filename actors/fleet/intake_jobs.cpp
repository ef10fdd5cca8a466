// How a job comes into a worker: from its frame to the mailbox of an engine's owner.
#include <algorithm>
#include <boost/asio/post.hpp>

#include "actors/arrival.h"
#include "actors/fleet/check_job.h"
#include "actors/fleet/intake.h"
#include "actors/overloaded.h"
#include "core/healing.h"
#include "core/insist.h"
#include "core/sample/dry.h"

namespace weir::actors::fleet {

namespace asio = boost::asio;
namespace wire = core::fleet;
using core::errc;

namespace {

// Two attempts of a job may be in one engine for a moment, under different ids.
core::job_id local_id(const core::job_id& id, std::uint8_t attempt) { return {id.hi, id.lo + attempt}; }

core::error engine_is_gone(const std::string& model) {
  return core::make_error(errc::unavailable, "the worker has no such engine of {} any more", model);
}

core::error not_healed() {
  return core::bad_param("token_healing", "the prompt ended with a token that has no text");
}

}  // namespace

void intake::take(wire::job_order o, std::string frame, const std::string& answer_to) {
  const job_name name{o.job.id, o.attempt};
  if (const auto there = guests_.find(name.id); there != guests_.end()) {
    if (there->second->name.attempt > name.attempt) return;  // it is void
    if (there->second->name == name) return answer(answer_to, wire::taken{name, 0, 0});
    forget(name.id);
  }
  core::memory_hold for_frame(doors_.memory);
  const bool has_room = for_frame.resize(frame.size());
  auto in = has_room ? admit(o) : core::result<newcomer>(no_memory_for_clients());
  if (!in) {
    ++now_.refused;
    answer(answer_to, wire::refused{name, in.error()});
    return tell_load();  // the gateway knows the engine by an old board
  }
  ++now_.taken;
  const auto n = std::make_shared<newcomer>(std::move(*in));
  guest& g = *n->who;
  g.frame = std::move(frame);
  g.frame_memory = std::move(for_frame);
  g.received = time_.now();
  g.model = o.model;
  g.engine = o.engine;
  guests_[name.id] = n->who;
  const auto arithmetic = wire::class_of(n->place->arithmetic, options_.build);
  answer(answer_to, wire::taken{name, n->place->admission->waiting(), arithmetic});
  tell_load();
  if (needs_making(n->job)) return make_ready(n);
  bring_in(*n);
}

// Everything that may refuse a job. What is admitted has to be given back or submitted.
core::result<intake::newcomer> intake::admit(wire::job_order& o) {
  if (state_ != wire::worker_state::ready)
    return core::make_error(errc::unavailable, "the worker takes no jobs any more");
  const auto all = doors_.list.look();
  const auto known = doors_.list.known(*all, o.model);
  if (!known) return known.error();
  newcomer n;
  n.model = (*known)->served;
  if (!n.model) return engine_is_gone(o.model);
  const auto& places = n.model->places;
  const auto at = std::ranges::find_if(
      places, [&](const auto& p) { return !p->far && static_cast<std::uint64_t>(p->engine) == o.engine; });
  if (at == places.end()) return engine_is_gone(o.model);
  n.place = *at;
  if (auto fine = check_job(o.job, *n.model, *n.place); !fine) return fine.error();
  auto* const p = peer_of(o.gateway);
  if (!p) return core::make_error(errc::overloaded, "the worker knows too many gateways");
  n.way = (*known)->use->enter(time_.now(), std::min(o.stay, doors_.demand.longest_stay));
  if (!n.way) return engine_is_gone(o.model);  // it leaves for another one
  if (auto fine = make_room(o, (*known)->use, n); !fine) return fine.error();
  p->heard = time_.now();
  ++p->jobs;
  n.job = std::move(o.job);
  return n;
}

// Makes the stream of the job, and counts the job in the account of memory and in the place's admission.
core::result<> intake::make_room(const wire::job_order& o, std::shared_ptr<model_use> use, newcomer& n) {
  const core::job& j = o.job;
  core::memory_hold memory(doors_.memory);
  if (!memory.resize(bytes_of(j))) return no_memory_for_clients();
  auto block = std::make_shared<job_stream::state_block>(
      local_id(j.id, o.attempt), ex_, doors_.lasting,
      [use = std::move(use)](const outcome&, const job_stream::state_block& b) {
        use->touch(b.time->now());
      });
  if (j.top_logprobs) block->keep_logprobs(*j.top_logprobs);
  block->open_queue();
  auto& admission = *n.place->admission;
  if (o.may_pause) {
    auto place = admission.pausable.take(n.model->name, j.key);
    if (!place) return place.error();
    block->pausable.emplace(std::move(*place));
  }
  const auto tokens = static_cast<std::uint32_t>(j.prompt.size());
  if (auto room = admission.admit(n.model->name, tokens); !room) return room;
  block->prompt = std::make_shared<waiting_prompt>();
  block->prompt->counts(admission, tokens);
  block->taken_by = n.place;
  block->deadline = j.deadline;
  block->prompt_tokens = tokens;
  block->first_prompt_token = j.prompt.front();
  block->engine_token_bytes = engine_token_bytes(j);
  block->memory = std::move(memory);
  n.who = std::make_shared<guest>();
  auto& g = *n.who;
  g.name = {j.id, o.attempt};
  g.gateway = o.gateway;
  g.slot = o.slot;
  g.spoken = static_cast<std::uint32_t>(j.spoken.size());
  g.key = j.key;
  g.user = o.user;
  g.answer = o.answer;
  g.priority = j.priority;
  g.created = j.created;
  g.block = block;
  g.stream = std::make_shared<job_stream>(block);
  g.stream->follow([self = weak_from_this(), who = std::weak_ptr(n.who)] {
    const auto alive = self.lock();
    const auto g = who.lock();
    if (alive && g) alive->note(g);
  });
  return {};
}

// Compiling takes long, and looking through a vocabulary takes a while: the service's pool does both.
void intake::make_ready(const std::shared_ptr<newcomer>& n) {
  const auto settle = [self = weak_from_this(), ex = ex_](const std::shared_ptr<newcomer>& n,
                                                          std::optional<core::error> wrong) {
    core::insist([&] {
      asio::post(ex, [self, n, wrong] {
        const auto alive = self.lock();
        if (wrong || !alive || n->who->block->abandoned())
          return give_back(*n, wrong ? *wrong : core::make_error(errc::unavailable, "nobody waits"));
        alive->bring_in(*n);
      });
    });
  };
  const auto again = [self = weak_from_this(), ex = ex_, n] {
    core::insist([&] {
      asio::post(ex, [self, n] {
        if (const auto alive = self.lock()) return alive->make_ready(n);
        give_back(*n, core::make_error(errc::unavailable, "nobody waits"));
      });
    });
  };
  doors_.constraints.post({.key = n->job.key,
                           .bytes = n->job.constraint_source ? n->job.constraint_source->text.size() : 0,
                           .run =
                               [n, settle, again](core::turn& at) {
                                 const auto made = make(*n, at, again);
                                 if (!made) return settle(n, made.error());
                                 if (*made) settle(n, std::nullopt);
                               },
                           .refuse = [n, settle](core::error why) { settle(n, std::move(why)); },
                           .unwanted = {}});
}

// False: another task compiles the same constraint, and `again` is called at its end.
core::result<bool> intake::make(newcomer& n, core::turn& at, std::function<void()> again) {
  core::job& j = n.job;
  const served_model& m = *n.model;
  if (j.healing && j.healing->allowed.empty()) {
    j.healing = core::healing_of(j.healing->token, *m.tokenizer, m.info.vocab_size);
    if (!j.healing) return not_healed();
  }
  if (const auto& b = j.sampling.dry_sequence_breakers; b && !b->texts.empty())
    j.sampling.dry_sequence_breakers =
        m.breakers->find(b->texts, *m.tokenizer, std::min(m.info.vocab_size, m.tokenizer->vocab_size()));
  if (!j.constraint_source) return true;
  auto compiled = m.constraints->get(*j.constraint_source, {}, at, std::move(again));
  if (!compiled) return false;
  if (!*compiled) return compiled->error();
  j.constraint = (*compiled)->rules;
  return true;
}

void intake::bring_in(newcomer& n) {
  const auto block = n.who->block;
  if (block->abandoned())  // its stream ends by itself
    return give_back(n, core::make_error(errc::unavailable, "nobody waits"));
  if (n.job.healing) block->healed = n.job.healing->bytes.size();
  n.job.id = block->id;
  n.job.constraint_source.reset();
  const auto ahead = n.place->admission->waiting();
  if (!n.place->port->submit(std::move(n.job), block))
    return give_back(n, overloaded(1, "the mailbox of the model's owner is full"));
  block->admitted(n.model, n.place, ahead);
}

void intake::give_back(newcomer& n, core::error why) {
  auto& block = *n.who->block;
  block.prompt.reset();
  block.pausable.reset();
  n.place->admission->job_done(0);
  block.refused(std::move(why));
}

}  // namespace weir::actors::fleet
