#include "tests/bench/actors/programs.h"

int main(int argc, char** argv) {
  return bench::main("weir", argc, argv,
                     {{"actor_creation", bench::actor_creation},
                      {"mailbox_performance", bench::mailbox_performance},
                      {"mixed_case", bench::mixed_case}});
}
