#include "net/response_store.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "net/protocol/answer_id.h"
#include "net/protocol/json.h"

namespace weir::net {
namespace {

constexpr std::uint64_t beside_the_texts = 512;  // of a response: the record and its places

}  // namespace

std::uint64_t stored_response::memory() const noexcept {
  return beside_the_texts + previous.capacity() + items.capacity() + object.capacity();
}

bool response_store::keep(stored_ptr r) {
  if (const auto old = all_.find(r->id); old != all_.end()) drop(old);
  const std::uint64_t bytes = r->memory();
  if (bytes > most_.bytes) return false;
  while (!order_.empty() && bytes_ + bytes > most_.bytes) drop(all_.find(order_.front()));
  while (!held_.resize(bytes_ + bytes)) {
    if (order_.empty()) return false;
    drop(all_.find(order_.front()));
  }
  bytes_ += bytes;
  const auto place = order_.insert(order_.end(), r->id);
  const auto id = r->id;
  all_.emplace(id, entry{std::move(r), time_.now() + most_.keep, place});
  while (room_is_over() && !order_.empty()) drop(all_.find(order_.front()));
  return all_.contains(id);
}

response_store::entries::const_iterator response_store::at(std::string_view id,
                                                           const actors::principal& who) const {
  const auto job = job_named(id);
  const auto found = job ? all_.find(*job) : all_.end();
  if (found == all_.end() || !who.has(found->second.response->owner)) return all_.end();
  return found->second.leaves_at <= time_.now() ? all_.end() : found;
}

stored_ptr response_store::find(std::string_view id, const actors::principal& who) const {
  const auto found = at(id, who);
  return found == all_.end() ? nullptr : found->second.response;
}

core::result<std::vector<stored_ptr>> response_store::chain(std::string_view id,
                                                            const actors::principal& who) {
  std::vector<stored_ptr> out;
  std::string_view next = id;
  while (!next.empty()) {
    const auto found = at(next, who);
    if (found == all_.end()) return std::vector<stored_ptr>();
    if (out.size() == longest_chain)
      return core::bad_param(
          "previous_response_id",
          "previous_response_id: over {} responses in a row; send the conversation as input", longest_chain);
    out.push_back(found->second.response);
    next = out.back()->previous;
  }
  std::ranges::reverse(out);
  for (const auto& r : out) renew(all_.find(r->id)->second);
  return out;
}

bool response_store::forget(std::string_view id, const actors::principal& who) {
  const auto found = at(id, who);
  if (found == all_.end()) return false;
  drop(all_.find(found->first));
  return true;
}

void response_store::tick() {
  while (!order_.empty()) {
    const auto next = all_.find(order_.front());
    if (next->second.leaves_at > time_.now() && !room_is_over()) return;
    drop(next);
  }
}

void response_store::renew(entry& e) {
  e.leaves_at = time_.now() + most_.keep;
  order_.splice(order_.end(), order_, e.place);
}

void response_store::drop(entries::iterator e) {
  bytes_ -= e->second.response->memory();
  held_.force(bytes_);
  order_.erase(e->second.place);
  all_.erase(e);
}

bool response_store::room_is_over() const noexcept {
  return account_ && account_->used() > account_->limit() / 2;
}

core::result<std::string> list_of_items(std::string_view items, const item_page& page) {
  if (page.limit < 1 || page.limit > most_items_of_a_page)
    return core::bad_param("limit", "limit must be in [1, {}], not {}", most_items_of_a_page, page.limit);
  json::array all = json::parse(json::string_view(items.data(), items.size())).as_array();
  if (page.newest_first) std::ranges::reverse(all);
  const auto id_of = [](const json::value& item) { return std::string_view(item.at("id").as_string()); };
  auto from = all.begin();
  if (!page.after.empty()) {
    from = std::ranges::find(all, std::string_view(page.after), id_of);
    if (from == all.end())
      return core::bad_param("after", "after: there is no item '{}'", core::shortened(page.after));
    ++from;
  }
  const auto left = static_cast<std::size_t>(all.end() - from);
  const auto to = from + static_cast<std::ptrdiff_t>(std::min(left, page.limit));
  std::string out;
  append_object(out, [&] {
    append_text(out, "object", "list");
    append_key(out, "data");
    out += json::serialize(json::array(from, to));
    for (const auto& [key, item] : {std::pair("first_id", from), std::pair("last_id", to - (from != to))}) {
      append_key(out, key);
      if (from == to)
        out += "null";
      else
        append_json_string(out, id_of(*item));
    }
    append_key(out, "has_more");
    out += to == all.end() ? "false" : "true";
  });
  return out;
}

std::string deletion_body(const core::job_id& id) {
  std::string out;
  append_object(out, [&] {
    append_text(out, "id", responses::response_id(id));
    append_text(out, "object", "response");
    append_key(out, "deleted");
    out += "true";
  });
  return out;
}

}  // namespace weir::net
