// model_order.h — an order of an admin to load, unload or swap models, or to let them sleep or wake, from its
// body to its answer.
//
// A `source` is a name below --models-dir, the name or source of a model that the server knows, random:SHAPE
// or sim. Any other path needs an admin's key: a path says which files of the machine exist, and a program
// that merely runs on the machine may not be allowed to read them.
//
// Thread safety: as each function says.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/service.h"
#include "net/http/reply.h"
#include "net/http/router.h"

namespace weir::net {

struct model_order {
  enum class kind { load, unload, swap, plan, terms, sleep, wake } is = kind::load;
  actors::load_order in;         // of load, swap and plan
  actors::terms_order terms;     // of terms
  actors::sleep_order sleep;     // of sleep; its name also of wake
  actors::unload_order away;     // of unload; `away.drain` also of swap
  std::vector<std::string> out;  // of swap
  bool wait = true;              // the answer comes when the order is carried out
  bool adds = false;             // a load is answered with 201
  bool router = false;           // the answer has llama.cpp's form
};

// The order of a request. Pure; any thread. Errors: invalid_param or not_supported, with the field's name.
core::result<model_order> read_order(const route_match& route, std::string_view body,
                                     std::size_t most_values);

// What decides on a source.
struct source_rules {
  std::string models_dir;  // empty: there is none
  bool any_path = false;   // the client has an admin's key
  std::vector<actors::model_status> known;
};
// Whether settle_source() reads the file system.
bool reads_files(const model_order& o, const source_rules& rules);
// Makes the source of `o.in` what the service takes: a path, or nothing where the model is known. An order in
// llama.cpp's form to load a model that sleeps becomes one to wake it. Returns the
// refusal: 403 source_forbidden, 404 model_not_found, 422 bad_file. Any thread.
std::optional<reply> settle_source(model_order& o, const source_rules& rules);

// Gives the order to the service; `done` gets the answer, posted to `shard`. Any thread.
void begin_order(actors::service& s, model_order o, const actors::executor& shard,
                 std::function<void(reply)> done);

// The refusal of a body.
reply refused_order(const core::error& e);
// Why an order was refused or failed: 404, 409 busy with Retry-After, 409 already_there, 422 bad_file, 422
// does_not_fit with the plan in `error.plan`, 503.
reply failed_order(const actors::order_error& e);

}  // namespace weir::net
