// nats_options.h — options of cnats, NATS' client library in C, for a join_plan.
//
// Only the files nats_*.cpp and this one know cnats. https://nats-io.github.io/nats.c describes it; what is
// said of its threads and locks here was read in its version 3.4.1.
//
// Thread safety: one thread at a time.
#pragma once

#include <nats/nats.h>

#include <memory>
#include <string>

#include "core/error.h"
#include "net/bus/join_plan.h"

namespace weir::net {

using nats_options = std::unique_ptr<natsOptions, decltype(&natsOptions_Destroy)>;

// What cnats calls, each with `box`. `sign` has the file of the key as its own closure, which lives as long
// as the connection.
struct nats_callbacks {
  void* box = nullptr;
  natsConnectionHandler up = nullptr, down = nullptr, closed = nullptr;
  natsErrHandler trouble = nullptr;
};

// `plan` outlives every connection that is made with these options. Errors: invalid_param names the option
// whose file is wrong.
core::result<nats_options> nats_options_of(const join_plan& plan, const std::string& name,
                                           const nats_callbacks& calls);

// The status of a try to connect whose signature begins with a byte of 0, as one in 256 does. cnats 3.4.1
// takes such a signature for an empty text and does not send it, so the server would refuse the process. The
// next try has another nonce to sign.
constexpr natsStatus signature_left_out = NATS_MISMATCH;

// The reason of cnats' last error on this thread.
std::string nats_reason(natsStatus s);

}  // namespace weir::net
