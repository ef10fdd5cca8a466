#include "tests/bench/actors/programs.h"

int main(int argc, char** argv) {
  return bench::main(BENCH_PEER, argc, argv,
                     {{"actor_creation", bench::actor_creation},
                      {"mailbox_performance", bench::mailbox_performance},
                      {"mixed_case", bench::mixed_case},
                      {"pingpong", bench::pingpong},
                      {"count", bench::count},
                      {"fjthrput", bench::fjthrput},
                      {"threadring", bench::threadring},
                      {"big", bench::big},
                      {"bndbuffer", bench::bndbuffer},
#ifdef BENCH_STREAMS
                      {"token_streams", bench::token_streams},
                      {"token_push", bench::token_push},
#endif
                      {"idle", bench::idle}});
}
