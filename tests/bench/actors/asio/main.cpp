#include "tests/bench/actors/programs.h"

int main(int argc, char** argv) { return bench::main("asio", argc, argv, {}); }
