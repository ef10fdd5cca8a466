// Orders to load, unload and swap models, whose answers may take minutes; and the events of GET /models/sse.
#include <boost/asio/ip/tcp.hpp>
#include <string_view>
#include <unordered_map>

#include "net/called_back.h"
#include "net/http/cell_orders.h"
#include "net/http/http_session.h"
#include "net/http/model_order.h"
#include "net/protocol/model_objects.h"

namespace weir::net {

namespace asio = boost::asio;

namespace {

using actors::model_status;
using actors::models_picture;

reply shutting_down() { return error_reply(503, "unavailable", "the server is shutting down"); }

// In thousandths, so that a load makes a bounded number of events.
int shown_progress(const model_status& m) { return static_cast<int>(progress_of(m) * 1000); }

bool looks_the_same(const model_status& a, const model_status& b) {
  return router_word(a.state) == router_word(b.state) && shown_progress(a) == shown_progress(b) &&
         a.reason == b.reason;
}

// The models of a picture by name; empty where there is none.
std::unordered_map<std::string_view, const model_status*> by_name(const models_picture* p) {
  std::unordered_map<std::string_view, const model_status*> out;
  if (!p) return out;
  for (const auto& m : p->models) out.emplace(m.name, &m);
  return out;
}

}  // namespace

// A client that leaves does not end its order: others may wait for the model.
asio::awaitable<bool> http_session::carry_out(const route_match& route, std::string body) {
  if (hub_.server().options.order_worker) co_return co_await order_worker(route, std::move(body));
  const auto parse = [route, most = hub_.limits().json_values](std::string_view text) {
    return read_order(route, text, most);
  };
  auto read = co_await read_watched<model_order>(std::move(body), parse);
  if (!read) co_return false;
  if (!*read->said) {
    reply no = refused_order(read->said->error());
    co_return co_await write(std::move(no));
  }
  const auto order = std::make_shared<model_order>(std::move(**read->said));
  auto no = co_await settle(order);
  if (!no && hub_.server().draining) no = shutting_down();
  if (no) {
    reply refused = std::move(*no);
    co_return co_await write(std::move(refused));
  }
  const order_beginning begin = [&](std::function<void(reply)> answered) {
    begin_order(hub_.server().service, std::move(*order), hub_.executor(), std::move(answered));
  };
  co_return co_await answer_order(begin);
}

// At a gateway the order goes to a worker.
asio::awaitable<bool> http_session::order_worker(const route_match& route, std::string body) {
  auto read = read_cell_order(route, body, from_.has_admin_key(), hub_.limits().json_values);
  if (!read || hub_.server().draining) {
    reply no = read ? shutting_down() : refused_order(read.error());
    co_return co_await write(std::move(no));
  }
  const order_beginning begin = [&](std::function<void(reply)> answered) {
    begin_cell_order(hub_.server().options, std::move(*read), hub_.executor(), std::move(answered));
  };
  co_return co_await answer_order(begin);
}

// Writes what an order that begin(answered) begins answers, however long that takes.
asio::awaitable<bool> http_session::answer_order(const order_beginning& begin) {
  const auto said = std::make_shared<std::optional<reply>>();
  auto answered = [said, news = std::weak_ptr(news_)](reply r) {
    *said = std::move(r);
    if (const auto alive = news.lock()) alive->notify();
  };
  begin(std::move(answered));
  watch_peer();
  const auto client_gone = [this] { return state_.at() == http_state::phase::client_gone; };
  while (!*said && !client_gone() && !hub_.server().draining) co_await news_->wait();
  if (client_gone()) co_return false;
  co_await stop_watching();
  reply out;
  if (*said) {
    out = std::move(**said);
  } else {
    out = shutting_down();
  }
  co_return co_await write(std::move(out));
}

// Files are looked for in the text pool: the file system may be slow.
asio::awaitable<std::optional<reply>> http_session::settle(std::shared_ptr<model_order> order) {
  auto& service = hub_.server().service;
  auto known = service.all_models();
  const auto rules = std::make_shared<const source_rules>(
      source_rules{hub_.server().options.models_dir, from_.has_admin_key(), std::move(known.models)});
  const auto refused = std::make_shared<std::optional<reply>>();
  if (!reads_files(*order, *rules)) {
    *refused = settle_source(*order, *rules);
    co_return std::move(*refused);
  }
  auto work = [order, rules, refused] { *refused = settle_source(*order, *rules); };
  auto begin = [&](auto done) {
    service.work_on_text(from_.who.key, order->in.spec.source.size(), work, hub_.executor(), done);
  };
  const auto no = co_await called_back<std::optional<core::error>>(begin);
  if (no) *refused = error_reply(*no);
  co_return std::move(*refused);
}

asio::awaitable<bool> http_session::follow_models() {
  auto changed = [news = std::weak_ptr(news_)] {
    if (const auto alive = news.lock()) alive->notify();
  };
  const auto place = hub_.models().follow(std::move(changed));
  if (!place) {
    reply no = error_reply(
        429, "overloaded",
        fmt::format("{} clients follow the models, and no more may", hub_.limits().model_followers));
    co_return co_await write(std::move(no));
  }
  if (form_.head_only) {
    reply head = events_reply();
    co_return co_await write(std::move(head));
  }
  watch_peer();
  co_await begin_events();
  co_await send_models(place);
  const bool gone = state_.at() == http_state::phase::client_gone;
  out_ = ": the end\n\n";
  if (!gone) co_await sender_.write_chunk(out_, true);
  sender_.end_events();
  out_.clear();
  co_await stop_watching();
  co_return state_.goes_on();
}

// What a client is sent next is the difference between what it was sent last and the latest picture, however
// long it took to read.
asio::awaitable<void> http_session::send_models(const model_watch::follower& place) {
  const auto over = [this] {
    return state_.at() == http_state::phase::client_gone || hub_.server().draining ||
           from_.expired(unix_ms());
  };
  model_watch::picture shown;
  while (!over()) {
    const model_watch::picture now = place.look();
    if (now != shown) {
      co_await send_difference(shown.get(), *now);
      shown = now;
      continue;
    }
    out_ = ": keep-alive\n\n";
    if (sender_.silent_too_long()) co_await sender_.write_chunk(out_, false);
    co_await news_->wait();
  }
}

asio::awaitable<void> http_session::send_difference(const models_picture* shown, const models_picture& now) {
  auto before = by_name(shown);
  out_.clear();
  for (const model_status& m : now.models) {
    const auto at = before.find(m.name);
    const model_status* was = at == before.end() ? nullptr : at->second;
    if (was) before.erase(at);
    if (!from_.allows_model(m.name) || (was && looks_the_same(*was, m))) continue;
    append_model_event(out_, m);
    if (out_.size() < body_parts::piece_bytes) continue;
    co_await sender_.write_chunk(out_, false);
    out_.clear();
  }
  for (const auto& [name, was] : before)
    if (from_.allows_model(name)) append_removal_event(out_, name);
  if (!out_.empty()) co_await sender_.write_chunk(out_, false);
  out_.clear();
}

}  // namespace weir::net
