// launch_clients.h — what programs that talk to a server need to be told, as data.
//
// Thread safety: pure functions and constants; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::apps {

// A client. Values and arguments may have the places of fill().
struct launch_client {
  std::string_view name;
  std::string_view program;  // on PATH; empty: there is none, and the variables are printed
  std::string_view install;  // how the program is installed
  std::vector<std::pair<std::string_view, std::string_view>> variables;
  std::vector<std::string_view> removed;    // variables that would lead the client elsewhere
  std::vector<std::string_view> arguments;  // before those of the user
  std::vector<std::string_view> usual;      // in the place of the user's arguments, where there are none
};

std::span<const launch_client> launch_clients();

// What a client is told.
struct launch_facts {
  std::string root;           // address of the server, without /v1 and without a slash at its end
  std::string key;            // never empty
  std::string model;          // as clients call it
  std::uint64_t context = 0;  // most tokens of prompt and answer together
};

// Replaces the places of a text: <root>, <host> (the root without its path), <path> (of the root, without a
// slash before it and with one behind it; empty: none), <key>, <model>, <context>, <output> (most tokens of
// an answer: a quarter of the context, 32,000 at most), and each with quotes, such as <"model">, as a JSON
// string, which is a string of TOML, too.
std::string fill(std::string_view text, const launch_facts& facts);

// A text as one word of a shell.
std::string shell_word(std::string_view text);

}  // namespace weir::apps
