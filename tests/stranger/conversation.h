// conversation.h — what is said on one connection, decided before it begins, and the loop that says it.
//
// A conversation is plain data: any thread. hold() is one thread's, runs one epoll loop, and leaves no socket
// open.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tests/stranger/socket.h"
#include "tests/stranger/target.h"

namespace weir::stranger {

inline constexpr std::size_t no_bound = std::numeric_limits<std::size_t>::max();

struct piece {
  std::string bytes;
  int pause_ms = 0;           // before it is sent
  bool after_answer = false;  // not before the server has said something, or half a second has passed
  // Not before an id is known, or half a second has passed; an_answer in it then stands for the id.
  bool names_answer = false;
};
// In a piece that names an answer: the id of one that a conversation of the round was told.
inline constexpr std::string_view an_answer = "{answer}";

enum class ending { close, half_close, reset };
enum class appetite { everything, sips, nothing };  // how the answers are read; sips: a few bytes at a time

struct conversation {
  std::string what;  // in words, for the report of a finding
  std::vector<piece> script;
  std::string block;  // after the script, sent over and over until block_bytes have gone
  std::size_t block_bytes = 0;
  ending end = ending::close;
  // Once everything is sent, the client ends after this silence, and after three times as long in any case.
  // With half_close FIN is sent before that.
  int linger_ms = 100;
  appetite reads = appetite::everything;
  std::uint32_t from = loopback;
  std::size_t most_answers = no_bound;  // HTTP answers that the server may give to all this
  std::size_t most_taken = no_bound;    // bytes that the server may take of this
  std::string must_not_hear;            // what no answer to this may say; empty: they may say anything
};

struct outcome {
  bool connected = false;
  std::size_t sent = 0;
  std::size_t received = 0;
  std::string heard;  // the first 64 KiB
  bool ended_by_peer = false;
};

// Holds all conversations at once, for at most `limit`.
std::vector<outcome> hold(const target& t, const std::vector<conversation>& all,
                          std::chrono::milliseconds limit);

// What the outcome shows to be wrong with the server; empty: nothing.
std::string complaint(const conversation& c, const outcome& o);

}  // namespace weir::stranger
