// http_wire.h — the client's half of HTTP/1.1 and of server-sent events without a socket: bytes in, events
// out. Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::load {

// A request with a JSON body, or a GET where the body is empty.
std::string http_request(std::string_view authority, std::string_view path, std::string_view body,
                         std::string_view key);

// Of a header's text, first line included; 0 where it is none.
int http_status(std::string_view head);
// A field's value, by its name in lower case; empty where it is missing.
std::string_view http_header(std::string_view head, std::string_view name);

// Answers, one after the other, whole or in chunks.
class http_reader {
 public:
  enum class kind { more, head, data, end, broken };
  struct item {
    kind is = kind::more;
    int status = 0;            // of head
    bool keeps_alive = true;   // of head
    std::string_view bytes;    // of data; of broken: why; until the next call
  };

  void feed(std::string_view bytes);
  // Call until it says `more`.
  item next();
  // The connection has ended: that ends a body without a length. False where it broke an answer off.
  bool ended();

  static constexpr std::size_t longest_head = 64 * 1024;

 private:
  enum class state { head, sized, chunk_size, chunk, chunk_end, trailer, until_end, over };
  item fail(std::string_view why);
  item read_head(std::string_view all);
  item take(std::size_t most, state then);
  std::optional<std::string_view> line();

  std::string bytes_;
  std::size_t at_ = 0;
  state now_ = state::head;
  std::uint64_t left_ = 0;
  bool end_due_ = false;
};

// The `data` of events, in a body that comes in pieces.
class sse_reader {
 public:
  void feed(std::string_view bytes);
  // The next event's data; nothing until more is fed. Valid until the next call.
  std::optional<std::string_view> next();
  void reset();

 private:
  std::string bytes_, data_;
  std::size_t at_ = 0;
  bool some_ = false;
};

}  // namespace weir::load
