#!/bin/sh
# cuda_resources.sh CUOBJDUMP LIBRARY — what the compiled kernels of every architecture in the library ask of
# a device, without one: static shared memory that every device gives a block, and registers that a thread
# may have. Dynamic shared memory is checked where it is asked for (static_assert,
# tests/kernels/cuda_limits_test.cpp).
set -eu
"$1" --dump-resource-usage "$2" | awk '
  /^arch = / { arch = $3 }
  /Function / { kernel = $2 }
  /REG:/ {
    match($0, /REG:[0-9]+/); registers = substr($0, RSTART + 4, RLENGTH - 4) + 0
    match($0, /SHARED:[0-9]+/); shared = substr($0, RSTART + 7, RLENGTH - 7) + 0
    count[arch]++
    if (registers > most_registers[arch]) most_registers[arch] = registers
    if (shared > most_shared[arch]) most_shared[arch] = shared
    if (shared > 49152 || registers > 255) { print "too much: " arch " " kernel $0; bad = 1 }
  }
  END {
    for (a in count) {
      print a ": " count[a] " kernels, at most " most_registers[a] " registers, " most_shared[a] \
            " bytes of static shared memory"
      some = 1
      if (count[a] < 50) { print "too few kernels were read"; bad = 1 }
    }
    if (!some) { print "no kernel was read"; bad = 1 }
    exit bad
  }'
