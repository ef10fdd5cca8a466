// http_wire.h — the client side of HTTP/1.1 and of server-sent events, without a socket: makes requests, and
// reads answers from bytes.
//
// Thread safety: readers have one owner; functions are pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::load {

// A POST with a JSON body, or a GET if the body is empty. `key`: API key; empty: none.
std::string http_request(std::string_view authority, std::string_view path, std::string_view body,
                         std::string_view key);

// Status of an answer; 0 if `head` is not the head of an HTTP/1 answer. `head`: first line and fields.
int http_status(std::string_view head);
// Value of a field; empty if it is missing. `name` is in lower case.
std::string_view http_header(std::string_view head, std::string_view name);

// Reads the answers of one connection, with a length, in chunks, or until the connection ends.
class http_reader {
 public:
  enum class kind { more, head, data, end, broken };
  struct item {
    kind is = kind::more;
    int status = 0;            // of head
    bool keeps_alive = true;   // of head
    std::string_view bytes;    // of data; of broken: the reason; valid until the next call
  };

  void feed(std::string_view bytes);
  // The next item; `more`: nothing until more bytes are fed.
  item next();
  // The connection has ended, which is the end of a body without a length. Returns false if an answer is
  // incomplete.
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

// Reads the `data` of server-sent events from a body that comes in pieces.
class sse_reader {
 public:
  void feed(std::string_view bytes);
  // Data of the next event, valid until the next call; nullopt until more bytes are fed.
  std::optional<std::string_view> next();
  // An event or a line was longer than `longest_event`. There is no next one, and nothing more is kept.
  bool too_long() const noexcept { return too_long_; }
  void reset();

  static constexpr std::size_t longest_event = 4 << 20;

 private:
  bool judge_length(std::size_t line);

  bool too_long_ = false;
  std::string bytes_, data_;
  std::size_t at_ = 0;
  bool some_ = false;
};

}  // namespace weir::load
