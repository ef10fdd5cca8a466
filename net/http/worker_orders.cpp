#include "net/http/worker_orders.h"

#include <memory>
#include <optional>
#include <utility>

#include "net/http/model_order.h"

namespace weir::net {

namespace wire = core::fleet;

namespace {

constexpr std::size_t most_wish_values = 4096;  // of an order's JSON

route_match route_of_wish(const wire::model_wish& w) {
  constexpr endpoint of_verb[] = {endpoint::add_model, endpoint::change_model, endpoint::remove_model,
                                  endpoint::swap_models, endpoint::plan_model};
  return {of_verb[static_cast<std::size_t>(w.verb)], w.name};
}

wire::wish_answer answer_of_wish(const reply& r) {
  wire::wish_answer a;
  a.status = r.status;
  a.body = r.body;
  for (const auto& h : r.headers)
    if (a.headers.size() < wire::most_answer_headers) a.headers.push_back(h);
  if (a.body.size() > wire::longest_answer || r.source)
    return answer_of_wish(error_reply(500, "internal", "the answer is longer than a message of a fleet"));
  return a;
}

}  // namespace

void carry_out_wish(actors::service& s, const std::string& models_dir, wire::model_wish wish,
                    const actors::executor& ex, std::function<void(wire::wish_answer)> done) {
  auto tell = [done = std::move(done)](const reply& r) { done(answer_of_wish(r)); };
  auto read = read_order(route_of_wish(wish), wish.body, most_wish_values);
  if (!read) return tell(refused_order(read.error()));
  const auto order = std::make_shared<model_order>(std::move(*read));
  const auto rules =
      std::make_shared<const source_rules>(source_rules{models_dir, wish.any_path, s.all_models().models});
  const auto refused = std::make_shared<std::optional<reply>>();
  auto settle = [order, rules, refused] { *refused = settle_source(*order, *rules); };
  auto begin = [&s, order, refused, ex, tell](std::optional<core::error> no) {
    if (no) return tell(error_reply(*no));
    if (*refused) return tell(**refused);
    begin_order(s, std::move(*order), ex, tell);
  };
  // Files are looked for in the text pool: the file system may be slow.
  s.work_on_text(0, order->in.spec.source.size(), settle, ex, begin);
}

}  // namespace weir::net
