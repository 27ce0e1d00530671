#!/bin/sh
# Includes go one way: tools -> bench -> eval -> models -> weights, kernels -> engine.
set -eu
cd "$SOURCE_DIR"
bad=0
# check FOLDER ALLOWED...: project includes of FOLDER's files must begin with one of the folders allowed.
check() {
    folder=$1
    shift
    [ -d "$folder" ] || return 0
    found=$(find "$folder" -path tools/gpusim -prune -o \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -exec grep -Hn '^#include "' {} + |
        grep -vE "#include \"(gpusim\.h\"|($(echo "$@" | tr ' ' '|'))/)" || true)
    if [ -n "$found" ]; then
        echo "$folder may include only: $*; found:"
        echo "$found"
        bad=1
    fi
}
check engine engine
check kernels kernels engine
check weights weights engine
check models models weights kernels engine
check eval eval models weights kernels engine
check bench bench eval models weights kernels engine
check tools tools eval bench models weights kernels engine
check tools/gpusim/driver driver check counters ptx exec numerics
check tools/gpusim/check check counters exec numerics
check tools/gpusim/counters counters exec numerics
check tools/gpusim/ptx ptx exec numerics
check tools/gpusim/exec exec numerics
check tools/gpusim/numerics tools/gpusim/numerics
long=$(find . -path ./build -prune -o \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.py' \) -print | grep -v '^./build' |
    xargs wc -l | awk '$1 > 800 && $2 != "total"')
if [ -n "$long" ]; then
    echo "files over 800 lines: $long"
    bad=1
fi
exit $bad
