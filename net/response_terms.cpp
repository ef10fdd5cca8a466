#include "net/response_terms.h"

#include <chrono>

#include "actors/arrival.h"

namespace weir::net {
namespace {

using phase = actors::job_stream::phase;

constexpr std::uint64_t beside_the_texts = 1024;

std::uint64_t bytes_of(const response_terms& t) {
  std::uint64_t names = 0;
  for (const auto& n : t.names) names += sizeof n + n.flat.size() + n.space.size() + n.name.size();
  return beside_the_texts + t.model.size() + t.echo.size() + t.items.size() + names;
}

}  // namespace

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

responses::response_head response_terms::head_of(const admitted_job& job) const {
  responses::response_head head;
  head.job = job.id;
  head.created_s = created_s;
  head.model = job.model.empty() ? model : job.model;
  head.echo = echo;
  head.names = names;
  head.warnings = ignored;
  head.warnings.insert(head.warnings.end(), job.warnings.begin(), job.warnings.end());
  return head;
}

std::int64_t response_terms::completed_s(const actors::outcome& how) const noexcept {
  return created_s + static_cast<std::int64_t>((how.ttft_ms + how.decode_ms) / 1000);
}

std::string response_terms::object_of(const actors::job_stream& job, responses::output_place* output) const {
  const auto& how = job.ended();
  return responses::response_object(head_of(admitted_job::of(job)), job.log(), how, completed_s(how), output);
}

core::result<terms_ptr> terms_of(read_response& asked, const actors::principal& owner,
                                 std::shared_ptr<core::memory_account> account) {
  auto t = std::make_shared<response_terms>();
  t->created_s = unix_seconds();
  t->model = asked.request.model;
  t->echo = std::move(asked.echo);
  t->names = std::move(asked.names);
  t->ignored = asked.ignored.warnings();
  t->ignored.insert(t->ignored.end(), asked.warnings.begin(), asked.warnings.end());
  t->stored = asked.store;
  t->items = std::move(asked.kept_items);
  t->previous = std::move(asked.previous_response_id);
  t->owner = owner;
  t->memory = core::memory_hold(std::move(account));
  if (!t->memory.resize(bytes_of(*t))) return actors::no_memory_for_clients();
  return terms_ptr(std::move(t));
}

stored_ptr stored_of(const response_terms& terms, const actors::job_stream& job) {
  auto r = std::make_shared<stored_response>();
  r->id = job.id();
  r->owner = terms.owner;
  r->previous = terms.previous;
  r->items = terms.items;
  r->object = terms.object_of(job, &r->output_at);
  return r;
}

void keep_when_ended(std::shared_ptr<response_desk> desk, terms_ptr terms,
                     const std::shared_ptr<actors::job_stream>& job) {
  job->follow([desk = std::move(desk), terms = std::move(terms), weak = std::weak_ptr(job)] {
    const auto alive = weak.lock();
    if (!alive || alive->state() != phase::done || alive->model().empty() || goes_on_elsewhere(*alive))
      return;
    desk->tell([r = stored_of(*terms, *alive)](response_store& store) { store.keep(r); });
  });
}

}  // namespace weir::net
