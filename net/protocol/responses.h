// responses.h — OpenAI's Responses API without a socket: makes requests of the bodies of /v1/responses, and
// makes a response object or the events of a stream of a job's log.
//
// A body becomes a request in two steps, since the response that it goes on with may be kept elsewhere:
// parse() reads the fields and names what has to be looked up, and converse() makes the conversation.
//
// Numbers of events (`sequence_number`) are a function of the job's log alone: 0 and 1 are response.created
// and response.in_progress, and each character group of the log has a delta of its own, however the log is
// cut into pieces. (A group ends with a token after which the text is whole, as token_log::whole_part() has
// it.) So a stream that is written again has the same events with the same numbers, up to the last byte.
//
// Pure functions: any thread. Events are appended to a string that the caller reuses.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/job_stream.h"
#include "actors/request.h"
#include "core/grammar/rules.h"
#include "net/protocol/ignored_fields.h"
#include "net/protocol/response_tools.h"

namespace weir::net::responses {

inline constexpr std::size_t most_metadata = 16;         // pairs
inline constexpr std::size_t longest_metadata_key = 64;  // bytes
inline constexpr std::size_t longest_metadata = 512;     // bytes of a value

struct parsed_request {
  actors::request request;  // its input is made by converse()
  bool stream = false;
  bool store = true;                  // the response can be read again, and gone on with
  bool background = false;            // the answer comes before the job has ended
  bool outlives = false;              // on_disconnect is "continue"; so is every background job
  bool generate = true;               // false, over a socket alone: the response has no answer
  std::string previous_response_id;   // empty: the conversation begins here
  std::vector<std::string> referred;  // ids of the item_reference items
  std::string instructions;
  boost::json::array items;                      // the input, as items of the API
  std::vector<flat_name> names;                  // of tools in namespaces
  std::string echo;                              // members that the response object repeats, without braces
  std::vector<core::grammar::warning> warnings;  // of what is left out
  ignored_fields ignored;                        // unknown fields
};

// Parses a body. `most_values`: most values and keys of its JSON (core/read_json.h). `of_socket`: it is a
// response.create message of a WebSocket, which always streams. Error: invalid_param with the field's name;
// with `strict`, for an unknown field too.
core::result<parsed_request> parse(std::string_view body, std::size_t most_values = SIZE_MAX,
                                   bool strict = false, bool of_socket = false);

// Finds an item by its id; null: there is none. The item lives until converse() returns.
using item_finder = std::function<const boost::json::value*(std::string_view id)>;

// Makes the conversation: the instructions, the items of earlier responses in their order, then the items of
// this request. References among its items are replaced by what `find` knows. Error: invalid_param with the
// place of the item.
core::result<void> converse(parsed_request& p, std::span<const boost::json::array> earlier = {},
                            const item_finder& find = {});

// The error for a previous_response_id that is not kept. Its code on the wire is not_found_code, its status
// 400.
inline constexpr std::string_view not_found_code = "previous_response_not_found";
core::error previous_not_found(std::string_view id);
bool is_previous_not_found(const core::error& e);

// The id of the response that a job writes: resp_ and the job's id.
std::string response_id(const core::job_id& job);
// The items of a request with an id each: one that has none gets msg_, `tag` and its number.
void name_items(boost::json::array& items, std::string_view tag);
// The job that wrote the item with this id; nullopt: the id is not one of an answer.
std::optional<core::job_id> job_of_item(std::string_view id);

// What all objects of one response repeat.
struct response_head {
  core::job_id job;
  std::int64_t created_s = 0;  // Unix time in s
  std::string model;
  std::string echo;              // of the request
  std::vector<flat_name> names;  // of the request
  std::vector<core::grammar::warning> warnings;
};

// Where the items of an answer stand in the text of its response object.
struct output_place {
  std::size_t begin = 0, size = 0;
};
// The response object of a job that has ended. `completed_s`: when, in Unix time. `output`: is told where the
// items stand.
std::string response_object(const response_head& head, const actors::token_log& log,
                            const actors::outcome& how, std::int64_t completed_s,
                            output_place* output = nullptr);
// The response object of a request that asks for no answer.
std::string prepared_object(const response_head& head, std::int64_t completed_s,
                            output_place* output = nullptr);
// The response object of a job that waits or runs.
std::string unfinished_object(const response_head& head, std::string_view status);

// Writes the server-sent events of one response, from its log.
class event_writer {
 public:
  explicit event_writer(response_head head) : head_(std::move(head)) {}

  // From now on events are counted, and appended only if their number is over `after`. REQUIRES: before
  // open().
  void go_on_after(std::int64_t after) noexcept { after_ = after; }
  // Appends response.created and response.in_progress.
  void open(std::string& out);
  // Appends the events of the tokens `from` to `to` - 1. REQUIRES: `from` is where the last piece ended, or
  // 0; from <= to <= log.whole().
  void piece(std::string& out, const actors::token_log& log, std::uint32_t from, std::uint32_t to);
  // Appends the events with which the last part ends, and response.completed, response.incomplete or
  // response.failed. A cancelled response ends with response.incomplete. REQUIRES: all tokens were given.
  void end(std::string& out, const actors::token_log& log, const actors::outcome& how,
           std::int64_t completed_s);
  // The same for a request that asks for no answer: response.completed. REQUIRES: no tokens were given.
  void end_prepared(std::string& out, std::int64_t completed_s);
  // Appends `error`, for what ends a stream before its job has begun.
  void fail(std::string& out, const core::error& e);
  // Appends `error` where the response goes on at another gateway of a fleet. Its number is that of the event
  // before, so that a client that goes on behind it misses no event.
  void leave(std::string& out, const core::error& e) const;
  void keep_alive(std::string& out) const;  // appends a comment, which clients do not see
  // The number of the next event.
  std::int64_t next() const noexcept { return next_; }

 private:
  struct open_part {
    core::part_kind kind = core::part_kind::text;
    std::uint32_t part = 0, call = 0;
    std::uint32_t from = 0;  // the token with which it began
  };
  template <class Members>
  void event(std::string& out, std::string_view type, const Members& members);
  void begin(std::string& out, const actors::token_log& log, const actors::part_piece& p,
             std::uint32_t token);
  void delta(std::string& out, std::string_view text);
  // `to`: the token behind the part's last one. `cut`: the answer ended before the part was whole.
  void finish(std::string& out, const actors::token_log& log, std::uint32_t to, bool cut);

  response_head head_;
  std::int64_t next_ = 0, after_ = -1;
  bool is_open_ = false, any_ = false;  // any_: a part has begun
  bool custom_ = false;                 // the part is the call of a custom tool
  open_part part_;
  std::string id_;  // of the item that is open
};

}  // namespace weir::net::responses
