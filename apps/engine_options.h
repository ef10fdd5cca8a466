// engine_options.h — makes the options of a service from the settings of the command line.
#pragma once

#include <string>

#include "actors/service.h"
#include "core/config.h"
#include "core/error.h"

namespace weir::apps {

// The directory of the bundled model, rill: beside an installed binary, or in the source tree of the build.
std::string bundled_model();

// `why_cpu` becomes the reason, for the user, where the device is auto and no cuda device can be used;
// otherwise it stays as it is. `models_dir`: a directory of models that can be loaded by name, beside those
// of --model, whose names count; empty: none. Error: the device is not in this build, two models have the
// same name, the chat template does not compile, the directory cannot be read, has too many entries or goes
// with a simulated device, or a context is wrong or of no model.
core::result<actors::service_options> service_options_of(const core::engine_settings& s,
                                                         const core::queue_settings& queue,
                                                         std::string& why_cpu,
                                                         const std::string& models_dir = {});

// Sets the names that stand for models, from texts NAME=MODEL. Error: another form, or a name that is a
// model's or an alias already.
core::result<> set_aliases(actors::service_options& o, const std::vector<std::string>& aliases);

// Sets the weights of models, from texts NAME=WEIGHT, and their limits, from texts NAME=LIMIT:N,LIMIT:N.
// Errors: another form, a number out of its range, a name that is no model's or is there twice, a limit that
// is wider than the options'.
core::result<> set_shares(actors::service_options& o, const std::vector<std::string>& shares);
core::result<> set_limits(actors::service_options& o, const std::vector<std::string>& limits);

// Sets how many copies of each model are served. Simulated devices are as many as it takes. Error: there are
// fewer devices than copies.
core::result<> set_copies(actors::service_options& o, std::uint32_t copies);

}  // namespace weir::apps
