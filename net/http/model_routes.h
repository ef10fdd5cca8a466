// model_routes.h — the routes about models that answer at once: their lists and their properties. Nothing
// here loads a model or waits for one.
//
// Thread safety: called on the hub's shard.
#pragma once

#include <string>

#include "net/http/reply.h"
#include "net/hub.h"

namespace weir::net {

// OpenAI's list: the models that are ready, and then those that are only known.
reply list_models(hub& h, const bearer& from);
reply show_model(hub& h, const std::string& name, const bearer& from);
// llama.cpp's /props. `name` is empty where the client named none: then it is the only model that is ready.
reply model_props(hub& h, const std::string& name, const bearer& from);
// For admins: every model, and the account of every device.
reply list_all_models(hub& h);

// For /v1/stats: `models`, which are those that the client may use and that were loaded once or are being
// loaded, and `devices`, the accounts of all devices.
void append_models_there(std::string& out, const actors::service& s, const bearer& from);

reply no_such_model(const std::string& name);
// Whether a model of this name is served, being loaded, or can be loaded.
bool is_known_model(hub& h, const std::string& name);

}  // namespace weir::net
