#include "core/fleet/landmarks.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "core/cache/page_name.h"
#include "core/fleet/frame_kind.h"

namespace weir::core::fleet {
namespace {

template <class IO, class List>
void list_fields(IO& io, List& all) {
  io.list(all, most_landmarks, [&](auto& name) {
    if constexpr (IO::writes) {
      io.fixed(name);
    } else {
      name = io.template fixed<std::uint64_t>();
    }
  });
  if constexpr (!IO::writes)
    if (std::ranges::adjacent_find(all, std::greater_equal()) != all.end()) io.fail();
}

template <class IO, class T>
void fields(IO& io, T& n) {
  io(n.worker);
  io(n.engine);
  io(n.before);
  io(n.now);
  list_fields(io, n.came);
  list_fields(io, n.gone);
}

}  // namespace

landmark_list sorted_landmarks(landmark_list names) {
  if (names.size() > most_landmarks) {
    std::ranges::nth_element(names, names.begin() + most_landmarks);
    names.resize(most_landmarks);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::unique(names);
  names.erase(twice.begin(), twice.end());
  return names;
}

std::vector<std::uint64_t> landmarks_of(std::span<const token_id> prompt, std::string_view salt,
                                        std::string_view kv_type) {
  std::vector<std::uint64_t> out;
  const std::size_t pages = prompt.size() / page_tokens;
  const std::size_t deepest = std::bit_floor(pages);
  page_name name = root_name(salt, kv_type);
  for (std::size_t depth = 1; depth <= deepest; ++depth) {
    name = name_of(name, prompt.subspan((depth - 1) * page_tokens).first<page_tokens>());
    if (std::has_single_bit(depth)) out.push_back(name.hi);
  }
  return out;
}

std::uint32_t known_tokens(std::span<const std::uint64_t> of_prompt, const landmark_list& of_engine) {
  for (std::size_t i = of_prompt.size(); i > 0; --i)
    if (std::ranges::binary_search(of_engine, of_prompt[i - 1]))
      return static_cast<std::uint32_t>(page_tokens << (i - 1));
  return 0;
}

std::string frame_of(const landmark_news& n) {
  std::string out = begin_frame(frame_kind::landmarks);
  byte_writer io(out);
  fields(io, n);
  return out;
}

std::optional<landmark_news> read_landmarks(std::string_view frame) {
  if (kind_of(frame) != frame_kind::landmarks) return std::nullopt;
  byte_reader io(body_of(frame));
  landmark_news n;
  fields(io, n);
  if (io.failed() || !is_name(n.worker) || n.now == 0 || (n.before == 0 && !n.gone.empty()))
    return std::nullopt;
  return n;
}

landmark_news change_of(const landmark_list& from, const landmark_list& to) {
  landmark_news n;
  std::ranges::set_difference(to, from, std::back_inserter(n.came));
  std::ranges::set_difference(from, to, std::back_inserter(n.gone));
  return n;
}

bool known_landmarks::take(const landmark_news& n) {
  if (n.before != 0 && n.before != number) return false;
  landmark_list stay, next;
  if (n.before != 0) std::ranges::set_difference(all, n.gone, std::back_inserter(stay));
  std::ranges::set_union(stay, n.came, std::back_inserter(next));
  if (next.size() > most_landmarks) return false;
  all = std::move(next);
  number = n.now;
  return true;
}

}  // namespace weir::core::fleet
