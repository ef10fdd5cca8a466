#!/usr/bin/env bash
# newcomer.sh WAY COMPILER SOURCE WORK [BUILD] — a project that knows nothing of weir but what the README says
# builds and runs in an empty folder. Its files are the README's own; WAY is how it gets the library.
#
# WAY: find_package, add_subdirectory, FetchContent, folder; embedded (engine and server, installed from
# BUILD); refusals
set -euo pipefail
way=$1 compiler=$2 source=$3 work=$4/$1-$2 build=${5:-}

command -v "$compiler" >/dev/null || { echo "skipped: $compiler is not installed here"; exit 77; }
rm -rf "$work"
mkdir -p "$work/project"
cd "$work/project"

say() { printf '== %s\n' "$*"; }
# The README's block whose first line names the file.
from_readme() {
  awk -v name="$1" '/^```/ { inside = !inside; first = 1; next }
                    inside && first { first = 0; wanted = ($2 == name) }
                    inside && wanted' "$source/README.md" >"$1"
  [ -s "$1" ] || { echo "the README has no $1"; exit 1; }
}
instead_of_find_package() { sed -i "s|^find_package.*|$1|" CMakeLists.txt; }

configure=(cmake -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Debug)
if command -v ccache >/dev/null; then configure+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
# What the runtime has no business to look for.
alone=(fmt PkgConfig OpenSSL CLI11 Catch2)
alone=("${alone[@]/#/-DCMAKE_DISABLE_FIND_PACKAGE_}")
alone=("${alone[@]/%/=ON}")

install_runtime() {
  say "install the runtime alone"
  "${configure[@]}" "${alone[@]}" -S "$source" -B ../weir-build -DWEIR_COMPONENTS=runtime -DWEIR_TESTS=OFF
  cmake --install ../weir-build --prefix "$work/prefix"
}

build_and_run() {
  "${configure[@]}" "$@" -B build
  cmake --build build
  said=$(build/counter)
  [ "$said" = "sum 3" ] || { echo "counter said '$said'"; exit 1; }
}

# configure_fails_with TEXT ARGS...
configure_fails_with() {
  local text=$1
  shift
  rm -rf refused
  if "${configure[@]}" "$@" -B refused >refused.log 2>&1; then echo "accepted: $*"; exit 1; fi
  tr -s ' \n' ' ' <refused.log | grep -qF -- "$text" || { cat refused.log; exit 1; }
}

from_readme CMakeLists.txt
from_readme main.cpp
case $way in
  find_package)
    install_runtime
    build_and_run -DCMAKE_PREFIX_PATH="$work/prefix"
    ;;
  add_subdirectory)
    instead_of_find_package "add_subdirectory($source weir)"
    build_and_run "${alone[@]}"
    ;;
  FetchContent)
    tar czf ../weir.tar.gz -C "$source" --transform 's,^,weir/,' CMakeLists.txt .cmake actors
    fetch="FetchContent_Declare(weir URL $work/weir.tar.gz)\nFetchContent_MakeAvailable(weir)"
    instead_of_find_package "include(FetchContent)\n$fetch"
    build_and_run "${alone[@]}"
    ;;
  folder)
    cp -r "$source/actors/runtime" weir
    "$compiler" -std=c++20 -I. main.cpp -o counter -pthread
    [ "$(./counter)" = "sum 3" ]
    ;;
  embedded)
    cmake --install "$build" --prefix "$work/prefix" >/dev/null
    cp "$source/docs/examples/embedded_model.cpp" main.cpp
    sed -i 's/COMPONENTS runtime/COMPONENTS engine server/; s/weir::runtime/weir::engine weir::server/' \
      CMakeLists.txt
    "${configure[@]}" -DCMAKE_PREFIX_PATH="$work/prefix" -B build
    cmake --build build
    timeout 60 "$source/tests/examples/embedded_model.sh" build/counter sim:rate=500
    ;;
  refusals)
    install_runtime
    sed -i 's/COMPONENTS runtime/COMPONENTS motor/' CMakeLists.txt
    configure_fails_with "weir has no component 'motor'; it has runtime, engine and server" \
      -DCMAKE_PREFIX_PATH="$work/prefix"
    sed -i 's/COMPONENTS motor/COMPONENTS runtime engine/' CMakeLists.txt
    configure_fails_with "this weir was installed without its component 'engine'" \
      -DCMAKE_PREFIX_PATH="$work/prefix"
    say "an installation of what is not built"
    "${configure[@]}" -S "$source" -B ../unbuilt -DWEIR_COMPONENTS=engine -DWEIR_TESTS=OFF -DWEIR_CUDA=OFF
    if cmake --install ../unbuilt --prefix "$work/prefix" >unbuilt.log 2>&1; then echo "installed"; exit 1; fi
    builds="cmake --build $(realpath ../unbuilt) --target weir_kernels"
    tr -s ' \n' ' ' <unbuilt.log | grep -qF -- "$builds" || { cat unbuilt.log; exit 1; }
    configure_fails_with "WEIR_COMPONENTS: 'motor' is not one of" -S "$source" -DWEIR_COMPONENTS=motor
    ;;
  *) echo "newcomer.sh: no such way: $way"; exit 2 ;;
esac
say "works: $way with $compiler"
