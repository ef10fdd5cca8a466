// actor.h — includes the whole actor runtime: spawn, tell, ask, streams, exclusive threads.
#pragma once

#include "actor_error.h"
#include "context.h"
#include "exclusive_thread.h"
#include "options.h"
#include "ref.h"
#include "reply.h"
#include "spawn.h"
#include "stream.h"
#include "wakes.h"
