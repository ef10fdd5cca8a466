#include "net/response_intake.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <unordered_map>

#include "core/read_json.h"
#include "net/called_back.h"
#include "net/protocol/answer_id.h"
#include "net/protocol/json.h"
#include "net/protocol/request_fields.h"
#include "net/random_hex.h"
#include "net/sent_text.h"

namespace weir::net {

namespace asio = boost::asio;

namespace {

constexpr const char* previous_param = "previous_response_id";

// A stored array is inside one more array than the body had around it.
constexpr std::size_t deepest_item = max_body_depth + 2;

// What a request goes on with.
struct history {
  std::vector<stored_ptr> chain;   // of the previous response, the oldest first
  std::vector<stored_ptr> others;  // that its references name
  std::optional<core::error> why_not;

  std::uint64_t bytes() const {
    std::uint64_t n = 0;
    for (const auto* list : {&chain, &others})
      for (const auto& r : *list) n += r->items.size() + r->output().size();
    return n;
  }
  std::uint64_t memory() const {
    std::uint64_t n = 0;
    for (const auto* list : {&chain, &others})
      for (const auto& r : *list) n += parsing_bytes(r->items) + parsing_bytes(r->output());
    return n;
  }
};

void finish(read_response& r) {
  if (!r.keeps_items) return;
  responses::name_items(r.items, random_hex());
  r.kept_items = json::serialize(r.items);
}

// Reads stored arrays within the values that are left.
class array_reader {
 public:
  explicit array_reader(std::size_t values) : left_(values) {}

  core::result<json::array> read(std::string_view text) {
    auto v = core::read_json(text, {deepest_item, left_});
    if (!v) return core::bad_param(previous_param, "{}: the conversation is too long", previous_param);
    left_ -= std::min(left_, core::values_in(*v));
    return std::move(v->get_array());
  }

 private:
  std::size_t left_;
};

// The items of an earlier response and of its answer.
core::result<std::vector<json::array>> arrays_of(const std::vector<stored_ptr>& all, array_reader& reader) {
  std::vector<json::array> out;
  for (const auto& r : all) {
    for (const std::string_view text : {std::string_view(r->items), r->output()}) {
      auto items = reader.read(text);
      if (!items) return items.error();
      out.push_back(std::move(*items));
    }
  }
  return out;
}

class item_index {
 public:
  void add(const std::vector<json::array>& arrays) {
    for (const auto& items : arrays) {
      for (const json::value& item : items) {
        const json::value* id = item.is_object() ? item.get_object().if_contains("id") : nullptr;
        if (id && id->is_string()) by_id_[std::string_view(id->get_string())] = &item;
      }
    }
  }
  const json::value* find(std::string_view id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string_view, const json::value*> by_id_;
};

// The items of arrays in JSON, one after the other, without brackets.
std::string joined(const std::vector<stored_ptr>& all) {
  std::string out;
  for (const auto& r : all) {
    for (const std::string_view text : {std::string_view(r->items), r->output()}) {
      const std::string_view inside = text.substr(1, text.size() - 2);
      if (!out.empty() && !inside.empty()) out += ',';
      out += inside;
    }
  }
  return out;
}

core::result<void> go_on(read_response& r, const history& known, std::size_t most_values) {
  array_reader reader(most_values);
  const auto earlier = arrays_of(known.chain, reader), others = arrays_of(known.others, reader);
  if (!earlier) return earlier.error();
  if (!others) return others.error();
  item_index index;
  if (!r.referred.empty()) {
    index.add(*others);
    index.add(*earlier);
  }
  const auto find = [&](std::string_view id) { return index.find(id); };
  if (auto made = responses::converse(r, *earlier, find); !made) return made;
  if (r.keeps_earlier) r.earlier_items = joined(known.chain);
  finish(r);
  return {};
}

// The jobs that wrote the items to which the request refers, each once.
std::vector<core::job_id> referred_jobs(const read_response& r) {
  std::vector<core::job_id> out;
  for (const auto& id : r.referred)
    if (const auto job = responses::job_of_item(id)) out.push_back(*job);
  std::ranges::sort(out);
  const auto same = std::ranges::unique(out);
  out.erase(same.begin(), same.end());
  return out;
}

// On the store's thread. `previous`: empty, if the chain is known.
history look_up(response_store& store, const actors::principal& who, const std::string& previous,
                const std::vector<core::job_id>& jobs) {
  history out;
  if (!previous.empty()) {
    auto chain = store.chain(previous, who);
    if (!chain) {
      out.why_not = chain.error();
    } else if (chain->empty()) {
      out.why_not = responses::previous_not_found(previous);
    } else {
      out.chain = std::move(*chain);
    }
  }
  for (const auto& job : jobs)
    if (auto found = store.find(job.text(), who)) out.others.push_back(std::move(found));
  return out;
}

}  // namespace

core::result<read_response> read_response_body(std::string_view text, const body_bounds& most) {
  auto parsed = responses::parse(text, most.values, most.strict, most.of_socket);
  if (!parsed) return parsed.error();
  read_response out{std::move(*parsed)};
  out.keeps_items = out.store || most.of_socket;
  out.keeps_earlier = most.of_socket;
  if (out.goes_on()) return out;
  if (auto made = responses::converse(out); !made) return made.error();
  finish(out);
  return out;
}

asio::awaitable<std::optional<core::error>> work_on_json(hub& h, std::uint64_t key, std::uint64_t bytes,
                                                         std::uint64_t memory, std::function<void()> work) {
  actors::service& service = h.server().service;
  core::memory_hold held(service.memory());
  if (!held.resize(memory)) co_return actors::no_memory_for_clients();
  if (bytes <= actors::longest_text_here) {
    work();
    co_return std::nullopt;
  }
  auto begin = [&](auto done) { service.work_on_text(key, bytes, std::move(work), h.executor(), done); };
  co_return co_await called_back<std::optional<core::error>>(begin);
}

asio::awaitable<core::result<void>> bring_history(hub& h, actors::principal who,
                                                  std::shared_ptr<read_response> asked, stored_ptr own) {
  history known;
  std::string previous = asked->previous_response_id;
  if (own && job_named(previous) == own->id) {
    known.chain.push_back(std::move(own));
    previous.clear();
  }
  const auto jobs = referred_jobs(*asked);
  if (jobs.size() > response_store::longest_chain)
    co_return core::bad_param("input", "input refers to items of over {} responses",
                              response_store::longest_chain);
  if (!previous.empty() || !jobs.empty()) {
    const auto work = [who, previous, jobs](response_store& store) {
      return look_up(store, who, previous, jobs);
    };
    auto begin = [&](auto done) { h.server().responses->ask(h.executor(), work, done); };
    history found = co_await called_back<history>(begin);
    if (found.why_not) co_return *found.why_not;
    if (known.chain.empty()) known.chain = std::move(found.chain);
    known.others = std::move(found.others);
  }
  const std::uint64_t bytes = known.bytes();
  const std::size_t most = h.limits().body_bytes;
  if (bytes > most)
    co_return core::bad_param(previous_param, "{}: the conversation has {} bytes, over {}", previous_param,
                              bytes, most);
  const std::uint64_t memory = known.memory();
  // the work outlives the connection, if that ends first
  const auto done = std::make_shared<core::result<void>>();
  std::function<void()> work = [asked, done, known = std::move(known), bytes,
                                values = h.limits().json_values] {
    *done = go_on(*asked, known, values);
    asked->request.bytes.reset();
    if (bytes > actors::longest_text_here) asked->request.bytes = actors::input_bytes(asked->request);
  };
  const auto no = co_await work_on_json(h, who.key, bytes, memory, std::move(work));
  if (no) co_return *no;
  co_return *done;
}

asio::awaitable<stored_ptr> find_stored(hub& h, std::string id, actors::principal who) {
  const auto work = [id = std::move(id), who](response_store& store) { return store.find(id, who); };
  auto begin = [&](auto done) { h.server().responses->ask(h.executor(), work, done); };
  co_return co_await called_back<stored_ptr>(begin);
}

}  // namespace weir::net
