// programs.h — the benchmark programs. Each peer defines these functions, one in each file.
//
// docs/measurements/runtime.md, «The programs», says what each program does.
#pragma once

#include "tests/bench/actors/bench.h"

namespace bench {

void actor_creation(const task& t);
void mailbox_performance(const task& t);
void mixed_case(const task& t);
void pingpong(const task& t);
void count(const task& t);
void fjthrput(const task& t);
void threadring(const task& t);
void big(const task& t);
void bndbuffer(const task& t);
void idle(const task& t);
void token_streams(const task& t);
void token_push(const task& t);

}  // namespace bench
