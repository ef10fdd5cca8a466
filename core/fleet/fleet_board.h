// fleet_board.h — what a worker tells all gateways of itself, four times a second and whenever its state
// changes. A board is JSON, so that people can read it too.
//
// Thread safety: plain data; pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace weir::core::fleet {

inline constexpr std::size_t longest_board = std::size_t{64} << 10;

enum class worker_state : std::uint8_t {
  ready,
  draining,  // takes no new jobs; its jobs run on
  leaving,   // its jobs have to move: it ends
};
const char* name(worker_state s) noexcept;

// An engine that runs a model.
struct board_model {
  std::string name;
  std::string device;
  std::uint64_t engine = 0;  // the worker's number of the engine
  // Its class (arithmetic_class.h): engines with equal ones give equal tokens. 0: not known, as on boards of
  // earlier builds.
  std::uint64_t arithmetic = 0;
  std::uint32_t vocab_size = 0;  // of its model
  std::string kv_type;           // of its keys and values in pages
  std::uint64_t digest = 0;      // of what requests need of the model: its tokens above all
  std::uint32_t context = 0;     // most tokens of a sequence
  std::uint64_t kv_tokens = 0;   // that its page pool holds
  std::uint64_t weight_bytes = 0;
  std::uint32_t batch = 0, queue = 0;  // most jobs that run, and that wait
  std::uint32_t jobs = 0;              // that run or wait
  std::uint32_t prompts = 0;           // that are not computed yet
  std::uint64_t prompt_tokens = 0;     // of these
  std::uint32_t places = 0;            // jobs that can run at once now; 0: not known yet
  double prompt_rate = 0, rate = 0;    // tokens computed and sampled a second; 0: not known yet
  std::string closed;                  // why it takes no jobs; empty: it does
  bool leaves = false;                 // it takes none, since the model leaves for another one
  // Digest of the model's text files, which the worker gives to gateways (file_list.h): 64 hexadecimal
  // digits; empty: it gives none, as earlier builds.
  std::string files;
};

// A model that the worker knows, whatever its state.
struct known_model {
  std::string name;
  std::string state;        // actors::name(model_state): absent, loading, ready, …
  std::uint64_t bytes = 0;  // that it takes, or would take where that is known
  double share = 1;         // its weight among the models of its device
  std::string reason;       // why its last load failed; empty: it did not
  bool wakes = false;       // it sleeps in the worker's memory
  bool pinned = false;      // it does not leave for another one
  std::uint32_t jobs = 0;   // that run or wait
  bool wanted = false;      // a gateway's requests wait for its load
};

// Memory of a device of the worker.
struct board_device {
  std::string name;
  std::uint64_t free = 0;  // bytes that a model could take
};

struct fleet_board {
  std::string worker;
  worker_state state = worker_state::ready;
  std::string build;            // version of the program
  std::uint64_t number = 0;     // counts the boards of the worker
  std::uint64_t silent_ms = 0;  // how long a host that has work has not finished a step
  // Since its start: frames that it could not read, or that are for no worker, and dropped; questions for
  // jobs of other keys.
  std::uint64_t broken = 0, untold = 0;
  std::vector<board_model> models;
  // For each gateway that the worker knows: frames of tokens sent to it, and its jobs that the worker has.
  struct share {
    std::uint64_t frames = 0;
    std::uint32_t jobs = 0;
  };
  std::map<std::string, share> gateways;
  std::vector<known_model> known;
  std::uint32_t known_left_out = 0;  // models beyond what the board has room for
  bool on_demand = false;            // it loads known models for requests of gateways
  std::vector<board_device> devices;  // those whose memory is known
};

// At most longest_board bytes: known models take a quarter of it at most, and what does not fit is left out.
std::string json_of(const fleet_board& b);
// Error: invalid_param for what is no board. Unknown members are ignored.
result<fleet_board> read_board(std::string_view json);

}  // namespace weir::core::fleet
