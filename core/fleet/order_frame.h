// order_frame.h — orders for the models of a worker, from a gateway's admin or from an operator, and what the
// worker answers.
//
// Who orders asks the worker for a permit first: a random number, good for one order within some seconds. So
// a stranger who may publish and cannot hear gives no order, and an order that is said again is void.
//
// Thread safety: plain data; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::core::fleet {

// Is published under the worker's control subject; the answer is a `permit`.
struct permit_wish {};
struct permit {
  std::uint64_t number = 0;
};

// As the requests of /v1/admin: POST models, POST models/{name}, DELETE models/{name}, POST swap, POST plan.
enum class model_verb : std::uint8_t { add, change, remove, swap, plan };

struct model_wish {
  std::uint64_t permit = 0;
  model_verb verb = model_verb::add;
  bool any_path = false;  // a source may be any path of the worker's machine: an admin's key was sent
  std::string name;       // of the path of a change or a removal; at most longest_wish_name bytes
  std::string body;       // JSON; at most longest_wish bytes
};
inline constexpr std::size_t longest_wish_name = 256, longest_wish = std::size_t{64} << 10;

// The answer of the worker's own admin route.
struct wish_answer {
  std::uint32_t status = 0;                                  // of HTTP, 100 to 599
  std::vector<std::pair<std::string, std::string>> headers;  // such as Retry-After; at most 8
  std::string body;                                          // JSON; at most longest_answer bytes
};
inline constexpr std::size_t longest_answer = std::size_t{512} << 10, most_answer_headers = 8;

std::string frame_of(const permit_wish& f);
std::string frame_of(const permit& f);
std::string frame_of(const model_wish& f);
std::string frame_of(const wish_answer& f);
// nullopt: another frame, or one that is cut or has a value that it may not have.
std::optional<permit_wish> read_permit_wish(std::string_view frame);
std::optional<permit> read_permit(std::string_view frame);
std::optional<model_wish> read_model_wish(std::string_view frame);
std::optional<wish_answer> read_wish_answer(std::string_view frame);

}  // namespace weir::core::fleet
