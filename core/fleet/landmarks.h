// landmarks.h — what a gateway knows of the prefix caches of workers: the landmarks of each engine
// (core/cache/prefix_tree.h). A prompt whose page at depth d is a landmark of an engine finds d pages there
// at least, and fewer than 2d.
//
// A worker tells the changes of an engine's landmarks about once a second, and all of them now and then. It
// tells the least most_landmarks names: names are hashes, so that these are a fair sample that stays the same
// while others come and go. The names are not secret from members of the fleet.
//
// Thread safety: plain data; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/token.h"

namespace weir::core::fleet {

inline constexpr std::size_t most_landmarks = 16384;  // of an engine

// Names, ascending and each once.
using landmark_list = std::vector<std::uint64_t>;

// The first most_landmarks of these names.
landmark_list sorted_landmarks(landmark_list names);

// The names that pages of a prompt at depths 1, 2, 4, 8, … have. `salt`: job::cache_salt; `kv_type`:
// model_info::kv_type.
std::vector<std::uint64_t> landmarks_of(std::span<const token_id> prompt, std::string_view salt,
                                        std::string_view kv_type);

// How many tokens of a prompt with these landmarks an engine's cache has at least.
std::uint32_t known_tokens(std::span<const std::uint64_t> of_prompt, const landmark_list& of_engine);

// A frame under the subject of a worker's boards.
struct landmark_news {
  std::string worker;
  std::uint64_t engine = 0;  // board_model::engine
  // The number of the list that changes, and of the one that it becomes; `before` 0: `came` is all of it.
  std::uint64_t before = 0, now = 0;
  landmark_list came, gone;
  bool operator==(const landmark_news&) const = default;
};
std::string frame_of(const landmark_news& n);
// nullopt: it is no such frame, it is cut, or its lists are not ascending or too long.
std::optional<landmark_news> read_landmarks(std::string_view frame);

// What makes `from` of `to`, without names and numbers.
landmark_news change_of(const landmark_list& from, const landmark_list& to);

// The landmarks of an engine as a gateway keeps them.
struct known_landmarks {
  landmark_list all;
  std::uint64_t number = 0;  // of the list; 0: none has come
  // Takes what was told. False: a change of another list, which is passed over: all of them come later.
  bool take(const landmark_news& n);
};

}  // namespace weir::core::fleet
