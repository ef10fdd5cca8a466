// model_objects.h — how models stand, as JSON: for /v1/admin/models, for the list of OpenAI with the fields
// of llama.cpp and vLLM, and as events and properties in the forms of llama.cpp.
//
// Pure functions: any thread. Each appends to a string.
#pragma once

#include <string>
#include <string_view>

#include "actors/model_orders.h"
#include "actors/service.h"

namespace weir::net {

// An object of /v1/admin/models.
void append_model(std::string& out, const actors::model_status& m);
// An object of the `models` of /v1/stats. `counted`: by all its engines so far.
void append_model_figures(std::string& out, const actors::model_status& m,
                          const core::engine_totals& counted);
// The host memory of models that sleep: `{"total","taken"}`.
void append_sleep_room(std::string& out, const actors::models_picture& p);
// An object of its `devices`.
void append_device(std::string& out, const actors::device_account& d);

// llama.cpp's word for a state: unloaded, loading, loaded, sleeping or failed.
std::string_view router_word(actors::model_state s) noexcept;
// How much of a load is done, 0 to 1; 0 while that is not known.
double progress_of(const actors::model_status& m) noexcept;

// An object of /v1/models. `served`: the same model where it is ready, else null. `alias`: the name under
// which it is shown, with its own in `meta.alias_of`; empty: its own.
void append_listed(std::string& out, const actors::model_status& m, const actors::model_entry* served,
                   std::string_view alias = {});

// Server-sent events: the state of one model, and that a model is known no more.
void append_model_event(std::string& out, const actors::model_status& m);
void append_removal_event(std::string& out, std::string_view model);

// The body of /props. `m`: the model that it is about; null: none. `chat_template`: the text of its template.
// `router`: no model was named, so that it is about the server, too; clients of llama.cpp know by `role` that
// they may ask for models.
std::string props_body(const actors::model_status* m, std::string_view chat_template, bool router);

}  // namespace weir::net
